private import CKeyhaul

/// The device descriptions that the program carries in itself (format `device-fixture/1`), so that `device create
/// --from` and the demo need no file.
public enum BundledFixtures {
  /// The names of all descriptions, as `--from` takes them, sorted.
  public static let names: [String] = fixtures.keys.sorted()

  /// The seed that all of them have: with a device's name it gives the published keys of the device.
  public static let seed: Int64 = 20_261_120

  /// The JSON document of a description, or `nil` where none has that name.
  public static func bytes(named name: String) -> [UInt8]? { fixtures[name] }

  private static let fixtures: [String: [UInt8]] = {
    var count = 0
    guard let first = keyhaul_fixtures(&count) else { return [:] }
    return Dictionary(
      UnsafeBufferPointer(start: first, count: count).map { fixture in
        (String(cString: fixture.name), Array(UnsafeBufferPointer(start: fixture.bytes, count: fixture.size)))
      },
      uniquingKeysWith: { first, _ in first })
  }()
}
