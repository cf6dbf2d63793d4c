import CKeyhaul

/// The device descriptions in the program itself (format `device-fixture/1`), so that creating a device from one and
/// the demo need no file.
package enum BundledFixtures {
  /// The sorted names of all bundled descriptions.
  package static let names: [String] = fixtures.keys.sorted()

  /// The seed of all bundled descriptions. Together with a device's name, it determines the published keys.
  package static let seed: Int64 = 20_261_120

  /// Returns the JSON document of a description, or `nil` if there is none with this name.
  package static func bytes(named name: String) -> [UInt8]? { fixtures[name] }

  private static let fixtures: [String: [UInt8]] = {
    var count = 0
    guard let firstFixture = keyhaul_fixtures(&count) else { return [:] }
    let documents = UnsafeBufferPointer(start: firstFixture, count: count).map { fixture in
      (String(cString: fixture.name), Array(UnsafeBufferPointer(start: fixture.bytes, count: fixture.size)))
    }
    return Dictionary(documents, uniquingKeysWith: { first, _ in first })
  }()
}
