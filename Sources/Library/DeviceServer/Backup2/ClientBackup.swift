import Basics
import KeyhaulKit

/// Reads backups in the client's folder: fetches their files, and answers requests that only read a backup.
struct ClientBackup {
  /// The maximum number of bytes of a property list of a backup.
  static let maximumPropertyListByteCount = 64 << 20
  private static let maximumDatabaseByteCount = 4 << 30
  private static let maximumPayloadByteCount = 1 << 30
  private static let maximumUnbackFileCount = 100_000
  private let device: ServedDevice
  private let link: DeviceLink
  private let actions: BackupAndRestore

  init(_ device: ServedDevice, _ link: DeviceLink, _ actions: BackupAndRestore) {
    (self.device, self.link, self.actions) = (device, link, actions)
  }

  /// Fetches the files that describe a backup, and optionally its keychain.
  ///
  /// - Parameters:
  ///   - source: The name of the client's folder, a valid identifier.
  ///   - folder: The folder to store the files in.
  ///   - hasPassword: Whether a password was given. Without a password, an encrypted backup is refused immediately.
  ///   - withKeychain: Whether to fetch Info.plist and the keychain file too.
  /// - Returns: The path of the fetched backup.
  /// - Throws: `.noBackup` if there is no backup or it is unfinished; `.wrongPassword` if it is encrypted and no password
  ///   was given.
  func fetch(
    _ source: String, into folder: StagingFolder, hasPassword: Bool, withKeychain: Bool
  ) throws(BackupServiceError) -> String {
    try folder.makeDirectory(source)
    try fetchPropertyLists(of: source, into: folder, hasPassword: hasPassword)
    guard try fetch("Manifest.db", of: source, into: folder, atMost: Self.maximumDatabaseByteCount) else {
      throw .failed(.noBackup, "Error reading the list of files")
    }
    if withKeychain { try fetchKeychain(of: source, into: folder) }
    return "\(folder.path)/\(source)"
  }

  private func fetchPropertyLists(
    of source: String, into folder: StagingFolder, hasPassword: Bool
  ) throws(BackupServiceError) {
    let limit = Self.maximumPropertyListByteCount
    guard let status = try link.downloadBytes("\(source)/Status.plist", atMost: limit),
      (try? BackupStatus(parsing: status))?.isFinished == true
    else { throw .failed(.noBackup, "Error reading status") }
    guard let manifest = try link.downloadBytes("\(source)/Manifest.plist", atMost: limit),
      let parsedManifest = try? BackupManifest(parsing: manifest)
    else { throw .failed(.noBackup, "Error reading backup properties") }
    if parsedManifest.isEncrypted == true, !hasPassword { throw .failed(.wrongPassword, BackupFailure.wrongPassword) }
    for (name, bytes) in [("Status.plist", status), ("Manifest.plist", manifest)] {
      _ = try folder.makeFile("\(source)/\(name)") { (write) throws(BackupServiceError) in
        try write(bytes)
        return true
      }
    }
  }

  private func fetchKeychain(of source: String, into folder: StagingFolder) throws(BackupServiceError) {
    _ = try fetch("Info.plist", of: source, into: folder, atMost: Self.maximumPropertyListByteCount)
    let keychainPath = MetadataFile.keychain.path
    try folder.makeDirectory("\(source)/\(keychainPath.prefix(2))")
    _ = try fetch(keychainPath, of: source, into: folder, atMost: Self.maximumPayloadByteCount)
  }

  /// Fetches one file, and returns whether the client has it.
  private func fetch(
    _ name: String, of source: String, into folder: StagingFolder, atMost limit: Int
  ) throws(BackupServiceError) -> Bool {
    try folder.makeFile("\(source)/\(name)") { (write) throws(BackupServiceError) in
      try link.download("\(source)/\(name)", atMost: limit, write)
    }
  }

  /// Carries out a request that only reads the client's backup.
  ///
  /// - Returns: The content of the response.
  func perform(_ request: BackupRequest) throws(BackupServiceError) -> PropertyDictionary {
    let folder = try StagingFolder(of: device)
    let password = try request.password()
    let path = try fetch(request.source, into: folder, hasPassword: password != nil, withKeychain: false)
    let backup = try actions.open(path, password: password)
    switch request.kind {
    case .info: return ["Content": .string(try information(about: backup))]
    case .list: return ["Content": .string(try list(of: backup))]
    case .unback:
      try unback(backup, request.source, folder)
      return [:]
    case .extract:
      try extract(request, backup, folder)
      return [:]
    // The caller handles these requests itself.
    case .backup, .restore, .changePassword, .enableCloudBackup, .eraseDevice, nil: return [:]
    }
  }

  // MARK: Contents

  private func information(about backup: BackupAndRestore.UnlockedArchive) throws(BackupServiceError) -> String {
    var totals: [String: (fileCount: Int, byteCount: Int64)] = [:]
    try actions.forEachFile(of: backup) { (file) throws(BackupServiceError) in
      let domain = file.domain ?? ""
      let size = (try? file.record())?.size ?? 0
      let total = totals[domain] ?? (0, 0)
      totals[domain] = (total.fileCount + 1, total.byteCount &+ size)
    }
    let archive = backup.archive
    var text = "Manifest:\n"
    text += "  IsEncrypted = \(archive.isEncrypted)\n"
    text += "  Date = \(archive.date.map { Timestamp.text(of: $0) } ?? "unknown")\n"
    text += "  Version = \(archive.manifest.version ?? "unknown")\n"
    text += "Status:\n"
    text += "  SnapshotState = \(archive.status?.snapshotState ?? "unknown")\n"
    text += "  IsFullBackup = \(archive.status?.isFullBackup ?? false)\n"
    text += " Count   Size (B) Domain name\n"
    for (domain, total) in totals.sorted(by: { $0.key < $1.key }) {
      text += Self.row(total.fileCount, total.byteCount, domain)
    }
    let fileCount = totals.values.reduce(0) { $0 + $1.fileCount }
    let byteCount = totals.values.reduce(0) { $0 &+ $1.byteCount }
    return text + Self.row(fileCount, byteCount, "Total")
  }

  /// Returns a line of the table, with the numbers aligned to the right.
  private static func row(_ fileCount: Int, _ byteCount: Int64, _ name: String) -> String {
    func padded(_ number: some BinaryInteger, _ width: Int) -> String {
      let digits = String(number)
      return String(repeating: " ", count: max(0, width - digits.count)) + digits
    }
    return "\(padded(fileCount, 6)) \(padded(byteCount, 10)) \(name)\n"
  }

  private static let columns = [
    "ID", "Digest", "Mode", "Inode", "UID", "GID", "Last modified", "Last status change", "Birth", "Size", "Class",
    "Domain", "Relative path", "Target", "Extended attributes",
  ]

  /// Returns a comma-separated table of the files. The last two columns are always empty.
  private func list(of backup: BackupAndRestore.UnlockedArchive) throws(BackupServiceError) -> String {
    var text = Self.columns.joined(separator: ", ") + "\n"
    try actions.forEachFile(of: backup) { (file) throws(BackupServiceError) in
      text += Self.fields(of: file).joined(separator: ", ") + "\n"
    }
    return text
  }

  private static func fields(of file: ListedFile) -> [String] {
    let record = try? file.record()
    func field(_ number: (some BinaryInteger)?) -> String { number.map { String($0) } ?? "" }
    return [
      file.fileIdentifier, record?.digest.map { String(hexadecimal: $0) } ?? "",
      record.map { String($0.mode, radix: 8) } ?? "", field(record?.inode), field(record?.userID),
      field(record?.groupID), field(record?.lastModified), field(record?.lastStatusChange), field(record?.birth),
      field(record?.size), field(record?.protectionClass.rawValue), CSV.fields([file.domain ?? ""]),
      CSV.fields([file.relativePath ?? ""]), "", "",
    ]
  }

  // MARK: Extracting files

  /// Returns the parts of the path at which a file is written below the client's folder.
  ///
  /// - Returns: `nil` if the path could lead out of the folder, cannot be decoded, or does not match the file's identifier.
  private static func safePath(of file: ListedFile) -> [String]? {
    guard let domain = file.domain, let path = file.relativePath, file.undecodedDomain == nil,
      file.undecodedPath == nil, (try? file.hasMatchingIdentifier()) == true
    else { return nil }
    return safeParts(domain: domain, path: path)
  }

  /// Returns the domain and the parts of the path; `nil` if one of them is not the plain name of a file or folder.
  static func safeParts(domain: String, path: String) -> [String]? {
    let parts = [domain] + path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    let forbidden: [UInt8] = [0, UInt8(ascii: "/"), UInt8(ascii: "\\")]
    let isSafe = parts.allSatisfy { part in
      !["", ".", ".."].contains(part) && !part.utf8.contains(where: forbidden.contains)
    }
    return isSafe ? parts : nil
  }

  /// Writes all files of the backup, decrypted, into a folder on the client's computer.
  private func unback(
    _ backup: BackupAndRestore.UnlockedArchive, _ source: String, _ folder: StagingFolder
  ) throws(BackupServiceError) {
    var files: [(file: ListedFile, parts: [String])] = []
    try actions.forEachFile(of: backup) { (file) throws(BackupServiceError) in
      guard file.kind == .file, let parts = Self.safePath(of: file) else { return }
      guard files.count < Self.maximumUnbackFileCount else {
        throw .failed(.cannotWrite, "a backup of more than \(Self.maximumUnbackFileCount) files")
      }
      files.append((file, parts))
    }
    let root = "_unback_/\(source)"
    try link.createDirectory("_unback_", progress: 0)
    try link.createDirectory(root, progress: 0)
    var createdDirectories: Set<String> = []
    for (file, parts) in files {
      var directory = root
      for part in parts.dropLast() {
        directory += "/" + part
        if createdDirectories.insert(directory).inserted { try link.createDirectory(directory, progress: 1) }
      }
      try sendContents(file, of: backup, from: source, to: "\(directory)/\(parts.last ?? "")", folder)
    }
    device.log("unpacked \(HumanReadable.count(files.count, "file"))")
  }

  /// Writes the requested file, decrypted, into the client's folder.
  private func extract(
    _ request: BackupRequest, _ backup: BackupAndRestore.UnlockedArchive, _ folder: StagingFolder
  ) throws(BackupServiceError) {
    guard let requested = request.file else { throw .failed(.notFound, "No file was named") }
    var match: ListedFile?
    try actions.forEachFile(of: backup) { (file) throws(BackupServiceError) in
      if file.kind == .file, file.domain == requested.domain, file.relativePath == requested.path { match = file }
    }
    guard let match, let name = Self.safePath(of: match)?.last else { throw .failed(.notFound, "File not found") }
    try sendContents(match, of: backup, from: request.source, to: name, folder)
  }

  /// Writes the decrypted content of a stored file to a path in the client's folder.
  private func sendContents(
    _ file: ListedFile, of backup: BackupAndRestore.UnlockedArchive, from source: String, to path: String,
    _ folder: StagingFolder
  ) throws(BackupServiceError) {
    guard isFileIdentifier(file.fileIdentifier) else { throw .failed(.noBackup, "Error reading the list of files") }
    let storedPath = backup.archive.layout.storedPath(of: file.fileIdentifier)
    guard backup.archive.areFilesEncrypted else { return try link.copy("\(source)/\(storedPath)", to: path) }
    try folder.makeDirectory("\(source)/\(file.fileIdentifier.prefix(2))")
    guard try fetch(storedPath, of: source, into: folder, atMost: Self.maximumPayloadByteCount) else {
      throw .failed(.cannotRead, "a file of the backup is missing")
    }
    let name = "plain-\(file.fileIdentifier)"
    try actions.decrypt(file, of: backup, into: folder, name)
    let files = try folder.files(in: "").files
    guard let decrypted = files.first(where: { $0.name == name }) else {
      throw .failed(.cannotRead, "a file of the backup cannot be decrypted")
    }
    try link.upload([.init(decrypted, displayName: "/.ba/\(storedPath)", to: path)], progress: 50)
    try folder.remove("\(source)/\(storedPath)")
    try folder.remove(name)
  }
}
