public import Basics
public import KeychainFormats

extension AttributeCode {
  /// In both boxes: the text that ties them together.
  static let tamperCheck: AttributeCode = "TamperCheck"
  /// In the attributes' box: the access control, as DER.
  static let secAccessControl: AttributeCode = "SecAccessControl"
}

extension DatabaseKeys {
  /// What an item's secret is filled up to: a multiple of so many bytes.
  static let paddedByteCount = 20

  /// Opens an item of a database: of version 7 or 8, or of 2 or 3, which stand in the same tables.
  ///
  /// Nothing of the item stops it: what is wrong with it is in the result, and what opened before that as well.
  /// - Parameters:
  ///   - bytes: The column `data`.
  ///   - kind: The table that it is of.
  ///   - secretKey: The key of the item's secret, 32 bytes, where something else has unwrapped it.
  /// - Throws: What is not the item's fault.
  public func open(
    row bytes: [UInt8], kind: ItemKind, secretKey: SensitiveBytes? = nil
  ) throws(DataProtectionError) -> OpenedDatabaseItem {
    var opened = OpenedDatabaseItem()
    if let version = ItemBlob.versionNumber(of: bytes), DatabaseItemBlob.Version(rawValue: version) == nil {
      return try openOlder(bytes, version: version, kind: kind)
    }
    let blob: DatabaseItemBlob
    do throws(FormatError) {
      blob = try DatabaseItemBlob(parsing: bytes)
    } catch {
      opened.fault = DatabaseItemFault(error, .messages)
      return opened
    }
    return try open(blob, kind: kind, secretKey: secretKey)
  }

  /// Opens an item whose messages have been read.
  ///
  /// - Parameters:
  ///   - blob: The item.
  ///   - kind: The table that it is of.
  ///   - secretKey: The key of the item's secret, 32 bytes, where something else has unwrapped it.
  /// - Throws: What is not the item's fault.
  public func open(
    _ blob: DatabaseItemBlob, kind: ItemKind, secretKey: SensitiveBytes? = nil
  ) throws(DataProtectionError) -> OpenedDatabaseItem {
    var opened = OpenedDatabaseItem()
    opened.keyClass = blob.keyClass
    do throws(DatabaseItemStop) {
      let (item, store) = try attributes(of: blob, kind: kind, into: &opened)
      opened.content = .attributes(item)
      let whole = try secret(of: blob, given: secretKey, into: item, store, &opened)
      try checkClasses(blob, item, opened.accessControl)
      opened.content = .open(whole)
      if let digest = item[.digest], try computedDigest(of: whole) != digest.dataValue {
        opened.findings.insert(.digestDiffers)
      }
    } catch {
      switch error {
      case .fault(let fault): opened.fault = fault
      case .failed(let failure): throw failure
      }
    }
    return opened
  }

  // MARK: Attributes

  private func attributes(
    of blob: DatabaseItemBlob, kind: ItemKind, into opened: inout OpenedDatabaseItem
  ) throws(DatabaseItemStop) -> (KeychainItem, SimulatorKeyStore?) {
    guard blob.attributes.tamperCheck.hasSameBytes(as: blob.secret.tamperCheck) else {
      throw DatabaseItemStop(.tamper, .outerTamperChecks, "the two parts have different tamper checks")
    }
    let classKey = try metadataKey(of: blob.keyClass.withoutGeneration)
    let keyBox = try formatted(.metadataKeyBox) { () throws(FormatError) in
      try ArchivedBox(archive: blob.attributes.wrappedKey)
    }
    let key = try key(in: keyBox, under: classKey.key, at: .metadataKeyBox)
    let box = try formatted(.attributesBox) { () throws(FormatError) in try ArchivedBox(archive: blob.attributes.box) }
    let plaintext = try open(box, key: key, at: .attributesBox)
    var item = try formatted(.attributesDictionary) { () throws(FormatError) in
      let item = try plaintext.withBytes { (bytes) throws(FormatError) in
        try KeychainItem(derDictionary: bytes, kind: kind, repairsDates: false)
      }
      guard item.secrets.isEmpty else { throw FormatError(.item, .malformed, "a secret is among the attributes") }
      return item
    }
    try check(item[.tamperCheck], blob.attributes.tamperCheck, at: .attributesTamperCheck)
    opened.accessControl = try formatted(.accessControl) { () throws(FormatError) in
      guard let bytes = item[.secAccessControl]?.dataValue else {
        throw FormatError(.accessControl, .malformed, "it is missing")
      }
      return try ItemAccessControl(parsing: bytes)
    }
    item[.tamperCheck] = nil
    item[.secAccessControl] = nil
    if classKey.store != nil, blob.keyClass.generation != 0 { opened.findings.insert(.generationInSimulator) }
    return (item, classKey.store)
  }

  private func check(
    _ inner: PropertyValue?, _ outer: String, at place: DatabaseItemFault.Place
  ) throws(DatabaseItemStop) {
    guard let inner = inner?.stringValue else { throw DatabaseItemStop(.tamper, place, "it has no tamper check") }
    guard inner.hasSameBytes(as: outer) else {
      throw DatabaseItemStop(.tamper, place, "its tamper check differs from the outer one")
    }
  }

  // MARK: Secret

  private func secret(
    of blob: DatabaseItemBlob, given: SensitiveBytes?, into item: KeychainItem, _ store: SimulatorKeyStore?,
    _ opened: inout OpenedDatabaseItem
  ) throws(DatabaseItemStop) -> KeychainItem {
    let unwrapped: UnwrappedKey
    if let given {
      guard given.count == Self.keyByteCount else {
        throw DatabaseItemStop(.malformed, .secretKey, "a key of \(given.count) bytes; it needs \(Self.keyByteCount)")
      }
      unwrapped = UnwrappedKey(key: given.withBytes { Secret(copying: $0) }, store: nil)
    } else {
      unwrapped = try secretKey(of: blob)
    }
    if let store, let other = unwrapped.store, other != store { opened.findings.insert(.mixedKeyStores) }
    let box = try formatted(.secretBox) { () throws(FormatError) in try ArchivedBox(archive: blob.secret.box) }
    let padded = try open(box, key: unwrapped.key, at: .secretBox)
    guard let count = padded.withBytes(Self.countWithoutPadding) else {
      throw DatabaseItemStop(.malformed, .padding, "its last byte is not a valid padding length")
    }
    let found = try formatted(.secretDictionary) { () throws(FormatError) in
      try padded.withBytes { (bytes) throws(FormatError) in
        try KeychainItem(
          derDictionary: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), kind: item.kind, repairsDates: false)
      }
    }
    try check(found[.tamperCheck], blob.secret.tamperCheck, at: .secretTamperCheck)
    guard found.attributes.count == 1 else {
      throw DatabaseItemStop(.malformed, .secretDictionary, "it contains something that is not a secret of its kind")
    }
    var whole = item
    whole.secrets = found.secrets
    return whole
  }

  /// How many bytes the padding leaves. The last byte alone says its length, as a signed number; neither the other bytes of
  /// the padding nor the whole length count: the tag of the box proves the bytes.
  ///
  /// - Returns: `nil` if the last byte is negative or more than there are, or if there is none.
  ///
  /// Source: Apple `SecDbKeychainItemV7.m`, `secretAttributesWithAcmContext`.
  static func countWithoutPadding(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard let last = bytes.last.map(Int.init), last <= Int8.max, last <= bytes.count else { return nil }
    return bytes.count - last
  }

  private func checkClasses(
    _ blob: DatabaseItemBlob, _ item: KeychainItem, _ accessControl: ItemAccessControl?
  ) throws(DatabaseItemStop) {
    let named = ProtectionClass(keyClass: blob.keyClass)
    // Of a token's item the access control names its class in another way.
    let controlled = accessControl?.protectionCode.map(ProtectionClass.init(rawValue:)) ?? named
    guard let named, item.protection == named, controlled == named else {
      throw DatabaseItemStop(.malformed, .classes, "its class, its pdmn and its access control disagree")
    }
  }

  /// `nil` where the item holds a value that DER has no form for, which none that was read does.
  private func computedDigest(of item: KeychainItem) throws(DatabaseItemStop) -> [UInt8]? {
    do throws(ItemSealError) {
      return try item.digest()
    } catch {
      if case .failed(let failure) = error.fault { throw .failed(failure) }
      return nil
    }
  }
}
