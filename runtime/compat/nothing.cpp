// A library of which programs need the name: build lines and other libraries list it, and nothing
// of it is called on the soft device.
