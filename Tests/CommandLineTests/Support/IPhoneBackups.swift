import Foundation

@testable import keyhaul

/// Three backups like those of a real iPhone: their device is not available, and `Info.plist` names apps.
enum IPhoneBackups {
  /// Returns a sandbox with the backups `plain`, `encrypted` and `old`, which has the format of iOS 9.
  static func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "backups of an iPhone") { sandbox in
      try sandbox.succeed("device create Santas-Phone --from old-phone -q")
      try sandbox.succeed("backup Santas-Phone -o plain/ --no-password -q")
      try sandbox.backUp("Santas-Phone", to: "encrypted/")
      _ = try OldBackup(in: sandbox, named: "old", of: "Santas-Phone")
      for name in ["plain", "encrypted", "old"] { try setApps(apps, in: name, of: sandbox) }
      try sandbox.succeed("device delete Santas-Phone --confirm Santas-Phone -q")
    }
  }

  private static let apps: [(identifier: String, name: String, genre: Int)] = [
    ("com.google.Authenticator", "Google Authenticator", 6002), ("net.whatsapp.WhatsApp", "WhatsApp Messenger", 6005),
    ("org.whispersystems.signal", "Signal - Private Messenger", 6005),
    ("io.metamask", "MetaMask - Crypto Wallet", 6015),
    ("org.example.savings", "Example Savings", 6015), ("org.example.chat", "Example Chat", 6005),
    ("org.example.game", "Example Game", 6014), ("org.example.maps", "Example Maps", 6010),
  ]

  /// Writes the apps into a backup's `Info.plist`, as Finder does: with the store's metadata as a binary property list.
  static func setApps(
    _ apps: [(identifier: String, name: String, genre: Int)], in backup: String, of sandbox: PhoneSandbox
  ) throws {
    var entries: [String: Any] = [:]
    for app in apps {
      let metadata: [String: Any] = [
        "itemName": app.name, "genreId": app.genre, "genre": "Genre", "artistName": "Artist",
      ]
      entries[app.identifier] = [
        "iTunesMetadata": try PropertyListSerialization.data(fromPropertyList: metadata, format: .binary, options: 0),
        "PlaceholderIcon": Data([1]),
      ]
    }
    try sandbox.editPropertyList("\(backup)/Info.plist") { info in
      info["Applications"] = entries
      info["Installed Applications"] = apps.map(\.identifier)
    }
  }
}
