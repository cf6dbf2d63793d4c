/// Binary property lists that are small, or compress well, but expand to far more content.
package enum CostlyPlists {
  /// Nested arrays, 23 levels deep, with ten references to the next one each: 343 bytes for 10^23 values.
  package static var nestedArrays: [UInt8] {
    let levels = (1...23).map { [0xAA] + [UInt8](repeating: UInt8($0), count: 10) }
    return propertyList(levels + [[0x51, 0x61]], offsetWidth: 2)
  }

  /// Returns a dictionary with an array of `count` references to the same empty array, with one byte for each.
  package static func manyElements(_ count: Int) -> [UInt8] {
    propertyList(
      [[0xD1, 1, 2], [0x51, 0x61], [0xAF] + integer(count) + [UInt8](repeating: 3, count: count), [0xA0]],
      offsetWidth: 4)
  }

  /// Returns a keychain file with many references to the same item.
  ///
  /// - Parameter padding: Bytes that nothing refers to.
  package static func sharedBlob(entries: Int, blob: [UInt8], padding: Int = 0) -> [UInt8] {
    propertyList(
      [
        [0xD1, 1, 2], [0x54] + Array("genp".utf8), [0xAF] + integer(entries) + [UInt8](repeating: 3, count: entries),
        [0xD1, 4, 5], [0x56] + Array("v_Data".utf8), [0x4F] + integer(blob.count) + blob,
      ], offsetWidth: 4, padding: padding)
  }

  /// Returns an `Info.plist` with many apps that share one metadata object.
  package static func sharedMetadata(apps count: Int, metadata: [UInt8]) -> [UInt8] {
    let first = UInt8(6)
    let names = (0..<count).map { text("app\($0)") }
    let apps =
      [0xDF, 0x10, UInt8(count)] + (0..<UInt8(count)).map { first + $0 } + [UInt8](repeating: 3, count: count)
    return propertyList(
      [
        [0xD1, 1, 2], text("Applications"), apps, [0xD1, 4, 5], text("iTunesMetadata"),
        [0x4F] + integer(metadata.count) + metadata,
      ] + names, offsetWidth: 4)
  }

  /// Returns the archive of a file record with many objects that no field refers to.
  ///
  /// - Parameter count: The number of references in its list of objects.
  package static func record(idleReferences count: Int) -> [UInt8] {
    let fields: [[UInt8]] = [[0xD1, 7, 8], text("RelativePath"), [0x51, 0x61]]
    return propertyList(
      [
        [0xD2, 1, 2, 3, 4], text("$top"), text("$objects"), [0xD1, 5, 9],
        [0xAF] + integer(count + 2) + [10, 6] + [UInt8](repeating: 10, count: count), text("root"),
      ] + fields + [[0x80, 1], [0xA0]], offsetWidth: 4)
  }

  /// Returns the archive of a file record with `count` keys in addition to its path.
  package static func record(keys count: Int) -> [UInt8] {
    let all = UInt8(count + 1)
    let record =
      [0xDF, 0x10, all] + [7] + [UInt8](repeating: 5, count: count) + [UInt8](repeating: 8, count: count + 1)
    return propertyList(
      [
        [0xD2, 1, 2, 3, 4], text("$top"), text("$objects"), [0xD1, 5, 9], [0xA2, 10, 6], text("root"), record,
        text("RelativePath"), [0x51, 0x61], [0x80, 1], [0xA0],
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
    let start = bytes.count
    let trailer =
      [0, 0, 0, 0, 0, 0, UInt8(offsetWidth), 1] + [UInt8](bigEndian: objects.count, count: 8)
      + [UInt8](bigEndian: 0, count: 8) + [UInt8](bigEndian: start, count: 8)
    return bytes + table + trailer
  }

  private static func text(_ text: String) -> [UInt8] { [0x50 | UInt8(text.utf8.count)] + Array(text.utf8) }

  private static func integer(_ value: Int) -> [UInt8] { [0x12] + [UInt8](bigEndian: value, count: 4) }

}
