import Basics
import KeychainFormats
import SystemPackage

/// What is left of a backup that ended before its manifest was written, or lost it.
extension DirectorySource {
  /// Where a device keeps what it writes until the backup is finished.
  ///
  /// Source: libimobiledevice, `idevicebackup2.c`.
  private static let snapshotName = "Snapshot"

  /// Why a directory without a manifest is a part of a backup; `nil` if nothing shows that it is one.
  ///
  /// - Parameter propertyLists: What of its property lists was read.
  func withoutManifest(_ directory: borrowing Descriptor, _ propertyLists: StoredParts) -> BackupArchiveError? {
    let (hasInfo, hasStatus) = (propertyLists.contains(.info), propertyLists.contains(.status))
    let payloadCount = payloadCount(in: directory)
    var facts = ["it has no \(StoredPart.manifest.path), which is needed to get its keys"]
    // An app has an Info.plist too.
    let snapshot = try? system.openDirectory(Self.snapshotName.systemName, in: directory)
    var hasSnapshot = false
    if let snapshot {
      hasSnapshot = true
      let inner = self.payloadCount(in: snapshot)
      facts.append("its folder \(Self.snapshotName) remains, with \(Amounts.count(inner, "payload"))")
    }
    guard hasInfo && hasStatus || (hasInfo || hasStatus) && (payloadCount > 0 || hasSnapshot) else { return nil }
    if let bytes = propertyLists[.info] { facts.append(Self.words(ofInfo: bytes)) }
    let status = propertyLists[.status].map { bytes in try? BackupStatus(parsing: bytes) }
    facts.append(Self.words(of: status))
    facts.append("\(Amounts.count(payloadCount, "payload")) \(payloadCount == 1 ? "is" : "are") in it")
    let isFinished = status??.isFinished == true
    return BackupArchiveError(isFinished ? .damaged : .manifestMissing, facts.joined(separator: "; "))
  }

  /// Whether `Manifest.db` starts like a database that is not encrypted.
  func hasDatabase(_ directory: borrowing Descriptor) -> Bool {
    do {
      let file = try system.openForReading(StoredPart.database.path, in: directory)
      guard try system.status(of: file.raw).kind == .file else { return false }
      let magic = DatabaseBytes.magic
      let start = try [UInt8](unsafeUninitializedCapacity: magic.count) { buffer, count in
        count = try system.read(file.raw, at: 0, into: UnsafeMutableRawBufferPointer(buffer))
      }
      return start == magic
    } catch {
      return false
    }
  }

  /// - Returns: 0 if they cannot be counted.
  private func payloadCount(in directory: borrowing Descriptor) -> Int {
    var identifiers: Set<String> = []
    for layout in BackupLayout.allCases {
      identifiers.formUnion((try? payloads(of: directory, layout: layout))?.fileIdentifiers() ?? [])
    }
    return identifiers.count
  }

  private static func words(ofInfo bytes: [UInt8]) -> String {
    let name = StoredPart.info.path
    guard let device = (try? ComputerProperties(parsing: bytes))?.device else { return "\(name) cannot be read" }
    let words = [
      device.name.map(quoted), device.productType.map(quoted), device.productVersion.map { "iOS \(quoted($0))" },
      device.identifier.map(quoted),
    ].compactMap(\.self)
    return "\(name) says \(words.isEmpty ? "nothing about its device" : words.joined(separator: ", "))"
  }

  /// - Parameter status: `nil` if there is none, and a `nil` in it if it cannot be read.
  private static func words(of status: BackupStatus??) -> String {
    let name = StoredPart.status.path
    switch status {
    case nil: return "it has no \(name)"
    case .some(nil): return "\(name) cannot be read"
    case .some(let status?): return "\(name) says \(status.snapshotState.map(quoted) ?? "nothing about its progress")"
    }
  }
}
