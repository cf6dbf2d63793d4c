extension Keyhaul {
  /// What a word may mean that is not a verb of the program.
  static let guesses = VerbPath.Guesses(meanings: meanings, verbOfFiles: "inspect")

  /// What other programs call a verb, or what people look for.
  private static let meanings = [
    "add": "item add", "check": "verify", "compare": "diff", "contents": "inspect", "copy": "convert",
    "create": "device create", "decrypt": "export", "devices": "device list", "dump": "export", "erase": "device erase",
    "extract": "export", "find": "item find", "get": "item find", "info": "inspect", "list": "inspect",
    "ls": "inspect", "migrate": "restore", "open": "inspect", "pack": "convert", "passwd": "rekey",
    "password": "rekey", "passwords": "export", "predict": "plan", "read": "inspect", "save": "backup",
    "search": "item find", "show": "inspect", "simulate": "plan", "tree": "inspect", "unpack": "convert",
  ]
}
