/// Binary property lists that are small, or compress well, but expand to far more content.
///
/// The objects of a property list refer to each other by their positions in its list of objects. The root is at 0. The
/// functions below give the other positions names.
package enum CostlyPlists {
  /// Nested arrays, 23 levels deep, each with ten references to the next array. 343 bytes stand for 10^23 values.
  package static var nestedArrays: [UInt8] {
    let levels = (UInt8(1)...23).map { nextLevel in array([UInt8](repeating: nextLevel, count: 10)) }
    return propertyList(levels + [text("a")], offsetWidth: 2)
  }

  /// Returns a dictionary with an array of `count` references to the same empty array. Each reference is one byte.
  package static func manyElements(_ count: Int) -> [UInt8] {
    let (key, elements, emptyArray): (UInt8, UInt8, UInt8) = (1, 2, 3)
    return propertyList(
      [
        dictionary(keys: [key], values: [elements]), text("a"),
        longArray([UInt8](repeating: emptyArray, count: count)), array([]),
      ], offsetWidth: 4)
  }

  /// Returns a keychain file with many references to the same item.
  ///
  /// - Parameter padding: Bytes that nothing refers to.
  package static func sharedItem(entries: Int, blob: [UInt8], padding: Int = 0) -> [UInt8] {
    let (kind, items, item, dataKey, itemData): (UInt8, UInt8, UInt8, UInt8, UInt8) = (1, 2, 3, 4, 5)
    return propertyList(
      [
        dictionary(keys: [kind], values: [items]), text("genp"),
        longArray([UInt8](repeating: item, count: entries)), dictionary(keys: [dataKey], values: [itemData]),
        text("v_Data"), data(blob),
      ], offsetWidth: 4, padding: padding)
  }

  /// Returns an `Info.plist` with many apps that share one metadata object.
  package static func sharedMetadata(apps count: Int, metadata: [UInt8]) -> [UInt8] {
    let (appsKey, apps, app, metadataKey, metadataValue): (UInt8, UInt8, UInt8, UInt8, UInt8) = (1, 2, 3, 4, 5)
    let firstName: UInt8 = 6
    let names = (0..<UInt8(count)).map { firstName + $0 }
    let nameTexts = (0..<count).map { text("app\($0)") }
    return propertyList(
      [
        dictionary(keys: [appsKey], values: [apps]), text("Applications"),
        dictionary(keys: names, values: [UInt8](repeating: app, count: count)),
        dictionary(keys: [metadataKey], values: [metadataValue]), text("iTunesMetadata"), data(metadata),
      ] + nameTexts, offsetWidth: 4)
  }

  /// Returns the archive of a file record with many objects that no field refers to.
  ///
  /// - Parameter count: The number of references to unused objects.
  package static func fileRecord(unusedReferences count: Int) -> [UInt8] {
    let path = dictionary(keys: [Archive.pathKey], values: [Archive.path])
    let unused = [UInt8](repeating: Archive.emptyArray, count: count)
    return archive(record: path, objects: longArray([Archive.emptyArray, Archive.record] + unused))
  }

  /// Returns the archive of a file record with `count` keys in addition to its path.
  package static func fileRecord(additionalKeys count: Int) -> [UInt8] {
    let fieldCount = count + 1
    let record = dictionary(
      keys: [Archive.pathKey] + [UInt8](repeating: Archive.rootKey, count: count),
      values: [UInt8](repeating: Archive.path, count: fieldCount))
    return archive(record: record, objects: array([Archive.emptyArray, Archive.record]))
  }

  /// The positions of the objects in the archive of a file record.
  private enum Archive {
    static let topKey: UInt8 = 1
    static let objectsKey: UInt8 = 2
    static let top: UInt8 = 3
    static let objects: UInt8 = 4
    static let rootKey: UInt8 = 5
    static let record: UInt8 = 6
    static let pathKey: UInt8 = 7
    static let path: UInt8 = 8
    static let recordNumber: UInt8 = 9
    static let emptyArray: UInt8 = 10
  }

  /// Returns the archive of a file record. The record must be number 1 in the archive's own list of objects.
  private static func archive(record: [UInt8], objects: [UInt8]) -> [UInt8] {
    propertyList(
      [
        dictionary(keys: [Archive.topKey, Archive.objectsKey], values: [Archive.top, Archive.objects]), text("$top"),
        text("$objects"), dictionary(keys: [Archive.rootKey], values: [Archive.recordNumber]), objects, text("root"),
        record, text("RelativePath"), text("a"), uid(1), array([]),
      ], offsetWidth: 4)
  }

  /// Assembles objects in order, with the first one as the root and references of one byte.
  private static func propertyList(_ objects: [[UInt8]], offsetWidth: Int, padding: Int = 0) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var table: [UInt8] = []
    for object in objects {
      table += [UInt8](bigEndian: bytes.count, count: offsetWidth)
      bytes += object
    }
    bytes += [UInt8](repeating: 0, count: padding)
    let tableStart = bytes.count
    let trailer =
      [0, 0, 0, 0, 0, 0, UInt8(offsetWidth), 1] + [UInt8](bigEndian: objects.count, count: 8)
      + [UInt8](bigEndian: 0, count: 8) + [UInt8](bigEndian: tableStart, count: 8)
    return bytes + table + trailer
  }

  /// Returns a dictionary with the keys and values at the given positions.
  private static func dictionary(keys: [UInt8], values: [UInt8]) -> [UInt8] {
    // From 15 on, the count is an integer object of its own after the marker, here of one byte.
    let start: [UInt8] = keys.count < 15 ? [0xD0 | UInt8(keys.count)] : [0xDF, 0x10, UInt8(keys.count)]
    return start + keys + values
  }

  /// Returns an array of fewer than 15 elements at the given positions.
  private static func array(_ references: [UInt8]) -> [UInt8] { [0xA0 | UInt8(references.count)] + references }

  /// Returns an array of elements at the given positions, with a four-byte count.
  private static func longArray(_ references: [UInt8]) -> [UInt8] {
    [0xAF] + fourByteInteger(references.count) + references
  }

  private static func data(_ bytes: [UInt8]) -> [UInt8] { [0x4F] + fourByteInteger(bytes.count) + bytes }

  /// Returns an ASCII string of fewer than 15 characters.
  private static func text(_ text: String) -> [UInt8] { [0x50 | UInt8(text.utf8.count)] + Array(text.utf8) }

  /// Returns a reference to an object of a keyed archive.
  private static func uid(_ number: UInt8) -> [UInt8] { [0x80, number] }

  private static func fourByteInteger(_ value: Int) -> [UInt8] { [0x12] + [UInt8](bigEndian: value, count: 4) }
}
