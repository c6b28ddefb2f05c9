from acltape import main

main()
