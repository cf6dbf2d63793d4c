@testable import keyhaul

/// A backup with unencrypted files in the layout of iOS 9, which a test can write by hand.
struct BackupWithFiles {
  let sandbox: PhoneSandbox

  static let files: [(domain: String, path: String, text: String)] = [
    ("HomeDomain", "Library/SMS/sms.db", "messages"), ("HomeDomain", "Library/notes.txt", "notes"),
    ("AppDomain-org.example.chat", "Documents/chat.txt", "chat"),
    ("AppDomainGroup-group.org.example.chat.shared", "shared.txt", "shared"),
    ("AppDomainGroup-group.family", "family.txt", "family"),
    ("AppDomainPlugin-org.example.chat.widget", "widget.txt", "widget"),
    ("AppDomain-org.example.chatter", "Documents/other.txt", "another app"),
  ]

  /// - Parameters:
  ///   - hasDigests: Whether the manifest has a digest of each file.
  ///   - undecoded: A further file in HomeDomain, whose path need not be UTF-8. It is the first in the manifest.
  init(
    _ files: [(domain: String, path: String, text: String)] = Self.files, hasDigests: Bool = true,
    undecoded: (path: [UInt8], text: String)? = nil
  ) throws {
    sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    // Payloads are in folders only since iOS 10.
    try sandbox.devices.run("rm -r b/Manifest.db b/??/")
    var manifest = MBDBRecord.header
    if let undecoded {
      manifest += try addPayload(undecoded.text, domain: "HomeDomain", path: undecoded.path, hasDigest: hasDigests)
    }
    for file in files {
      manifest += try addPayload(file.text, domain: file.domain, path: Array(file.path.utf8), hasDigest: hasDigests)
    }
    try sandbox.write(manifest, to: "b/Manifest.mbdb")
  }

  /// Writes the payload of a file, and returns the file's record for the manifest.
  private func addPayload(_ text: String, domain: String, path: [UInt8], hasDigest: Bool) throws -> [UInt8] {
    let bytes = Array(text.utf8)
    try sandbox.write(bytes, to: "b/\(MBDBRecord.fileName(domain: domain, path: path))")
    return try MBDBRecord.bytes(
      domain: domain, path: path, content: bytes, modified: 1_400_000_000, hasDigest: hasDigest)
  }

  /// Returns the paths of the exported files in a folder, without the manifest that the export writes.
  func exportedPaths(in folder: String) throws -> [String] {
    try sandbox.devices.run("cd \(folder) && find . -type f ! -name 'keyhaul-files.*' | sed 's,^./,,' | sort").output
      .split(separator: "\n").map(String.init)
  }
}
