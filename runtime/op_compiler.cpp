// libacl_op_compiler.so: build lines of ACL programs name this library. It exports nothing, because
// the soft device compiles no operators; a program that calls one of the vendor's functions does
// not link (rule GEN-10).
