import Basics
internal import KeychainFormats

/// Items of the versions before, which stand in the same tables: one box with everything.
extension DatabaseKeys {
  /// Opens an item of version 2 or 3; one of 4 to 6 is told from damage and not opened.
  func openOlder(_ bytes: [UInt8], version: UInt32, kind: ItemKind) throws(DataProtectionError) -> OpenedDatabaseItem {
    var opened = OpenedDatabaseItem()
    do throws(DatabaseItemStop) {
      if version == AccessControlBlob.version, (try? AccessControlBlob(parsing: bytes)) != nil {
        throw DatabaseItemStop(.accessControl, .secretKey, "only the item's own device can decrypt it")
      }
      let blob: ItemBlob
      do throws(FormatError) {
        blob = try ItemBlob(parsing: bytes)
      } catch {
        throw .fault(DatabaseItemFault(error, error.code == .unsupportedVersion ? .version : .messages))
      }
      opened.keyClass = blob.keyClass
      let item = try item(in: blob, kind: kind, &opened)
      opened.content = .open(item)
    } catch {
      switch error {
      case .fault(let fault): opened.fault = fault
      case .failed(let failure): throw failure
      }
    }
    return opened
  }

  private func item(
    in blob: ItemBlob, kind: ItemKind, _ opened: inout OpenedDatabaseItem
  ) throws(DatabaseItemStop) -> KeychainItem {
    let keyClass = blob.keyClass.withoutGeneration
    guard let named = ProtectionClass(keyClass: keyClass) else {
      throw DatabaseItemStop(.malformed, .messages, "its class \(blob.keyClass.rawValue) is not a class of items")
    }
    let unwrapped = try unwrap(SensitiveBytes(copying: blob.wrappedKey), keyClass: keyClass, at: .secretKey)
    let sealed = Sealed(ciphertext: blob.ciphertext, tag: blob.tag)
    let plaintext: SensitiveBytes?
    do throws(DataProtectionError) {
      plaintext = try withWorkspace { (workspace) throws(DataProtectionError) in
        guard blob.hasStaticIV else { return try workspace.olderItems.openWithEmptyNonce(sealed, key: unwrapped.key) }
        return try workspace.olderItems.openWithNonce(
          ItemForm.staticNonce, header: blob.authenticatedHeader, sealed, key: unwrapped.key)
      }
    } catch {
      throw .failed(error)
    }
    guard let plaintext else {
      throw DatabaseItemStop(.tagMismatch, .secretBox, "its authentication tag does not match its bytes")
    }
    let item = try formatted(.secretDictionary) { () throws(FormatError) in
      switch blob.version {
      case .v2: try KeychainItem(plistDictionary: plaintext, kind: kind)
      case .v3: try KeychainItem(derDictionary: plaintext, kind: kind)
      }
    }
    guard item.protection == named else {
      throw DatabaseItemStop(.malformed, .classes, "its pdmn does not name its class, \(keyClass.rawValue)")
    }
    if unwrapped.store != nil, blob.keyClass.generation != 0 { opened.findings.insert(.generationInSimulator) }
    return item
  }
}
