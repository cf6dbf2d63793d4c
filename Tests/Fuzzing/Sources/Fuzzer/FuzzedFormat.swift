import DataProtection
import KeychainFormats

/// A format under the fuzzer: what is done with bytes that may be anything, and examples of it to begin with.
enum FuzzedFormat: String, CaseIterable, FuzzedInput {
  case keybag
  case itemBlob = "item-blob"
  case accessControlBlob = "access-control-blob"
  case databaseItem = "database-item"
  case persistentReference = "persistent-reference"
  case der
  case binaryPlist = "binary-plist"
  case xmlPlist = "xml-plist"
  case fileRecord = "file-record"
  case oldManifest = "old-manifest"
  case keychainFile = "keychain-file"
  case sealedItem = "sealed-item"

  /// Reads the bytes, and stops the process where what is read is not written as it was, or not read again as it is.
  ///
  /// What does not follow the format is no finding.
  func run(_ bytes: [UInt8]) {
    do throws(FormatError) {
      switch self {
      case .keybag:
        let keybag = try Keybag(parsing: bytes)
        expect(keybag.serialized() == bytes, "a keybag is written as it was read")
        try? keybag.validate()
      case .itemBlob:
        if let old = try? LegacyItemBlob(parsing: bytes) { _ = String(describing: old) }
        let blob = try ItemBlob(parsing: bytes)
        expect(blob.serialized() == bytes, "a blob is written as it was read")
      case .accessControlBlob:
        let blob = try AccessControlBlob(parsing: bytes)
        expect(blob.serialized() == bytes, "a blob with access control is written as it was read")
      case .databaseItem:
        if let box = try? ArchivedBox(archive: bytes) { _ = String(describing: box) }
        if let access = try? ItemAccessControl(parsing: bytes) { _ = try access.serialized() }
        let blob = try DatabaseItemBlob(parsing: bytes)
        let written = try blob.serialized()
        expect(try DatabaseItemBlob(parsing: written).serialized() == written, "a row's blob is read again as it is")
      case .persistentReference:
        let reference = try PersistentReference(parsing: bytes)
        expect(try reference.serialized() == bytes, "a reference is written as it was read")
      case .der:
        // More is read than is written, as Apple reads it: entitlements, numeric strings, pairs out of order.
        let value = try DERPropertyList.decode(bytes)
        guard let written = try? DERPropertyList.encode(value) else { return }
        let again = try DERPropertyList.decode(written)
        expect(try DERPropertyList.encode(again) == written, "DER that was written has one form")
      case .binaryPlist:
        // A null and a set are read and never written.
        let value = try BinaryPlist.decode(bytes)
        guard let written = try? BinaryPlist.encode(value) else { return }
        expect(try BinaryPlist.encode(BinaryPlist.decode(written)) == written, "a property list is read again as it is")
      case .xmlPlist:
        let value = try XMLPlist.decode(bytes)
        guard let written = try? XMLPlist.encode(value) else { return }
        expect(
          try XMLPlist.encode(XMLPlist.decode(written)) == written, "a property list in XML is read again as it is")
      case .fileRecord:
        let record = try FileRecord(archive: bytes)
        guard let written = try? record.archived() else { return }
        expect(try FileRecord(archive: written) == record, "a file's record is read again as it is")
      case .oldManifest:
        var (entries, count) = (try OldManifest(bytes).entries(), 0)
        while try entries.next() != nil { count += 1 }
        expect(count <= bytes.count, "a list has no more records than bytes")
      case .keychainFile:
        let file = try KeychainBackupFile(parsing: bytes)
        let written = try file.serialized()
        expect(
          try KeychainBackupFile(parsing: written).serialized() == written, "a keychain file is read again as it is")
      case .sealedItem:
        guard let opened = SealedItems.open(bytes) else { return }
        expect(SealedItems.secrets.contains(opened), "what opens is what was sealed")
      }
    } catch {
      // It does not follow the format, and says where.
      _ = String(describing: error)
    }
  }
}
