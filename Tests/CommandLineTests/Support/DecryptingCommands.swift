/// The command lines that decrypt a backup named `b` without changing anything.
enum DecryptingCommands {
  static let all = [
    "inspect b", "inspect b --list", "inspect b --tree", "verify b", "diff b b", "export b -o -",
    "export b --domain KeychainDomain --path keychain-backup.plist -o -", "rekey b --new-password-file .np -n",
    "plan b --to new-phone", "restore b --to new-phone -n", "why b --service chat.example --account anna",
  ]
}
