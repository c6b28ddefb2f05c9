from acltape.command import main

main()
