import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import VirtualDevice

/// Measures adding items one by one to the keychain of a device, and finding an item among very many.
enum KeychainBenchmark {
  private static let addedCount = 10_000
  private static let storedCount = 100_000
  private static let fewCount = 1_000

  static func adding() throws -> [Figure] {
    let home = try TemporaryDeviceSet()
    let device = try home.devices.create(DeviceName("adding"), passcode: Secret(utf8: "1234"))
    var wallTime = 0.0
    let processorTime = try processorSeconds {
      wallTime = try seconds {
        let session = try device.openSession(.writing, verb: "benchmark")
        for index in 0..<addedCount { try session.add(item(index)) }
        try session.close()
      }
    }
    return [
      Figure(name: "\(addedCount) adds, one by one", value: wallTime, unit: "s", limit: 5),
      Figure(name: "\(addedCount) adds, processor time", value: processorTime, unit: "s", limit: nil),
    ]
  }

  static func finding() throws -> [Figure] {
    let home = try TemporaryDeviceSet()
    let device = try createDevice("finding", with: storedCount, in: home.devices)
    let session = try device.openSession(.reading, verb: "benchmark")
    defer { session.invalidate() }
    var times: [Double] = []
    for step in 0..<500 {
      // The prime spreads the searches over all items.
      let index = step &* 7_919 % storedCount
      let query = ItemQuery(
        kind: .genericPassword,
        attributes: [.service: .string("service-\(index).example.org"), .account: .string("person-\(index)")],
        wantsSecret: true)
      var count = 0
      times.append(try seconds { count = try session.find(query).items.count })
      guard count == 1 else { throw Run.Failure(description: "item \(index) was found \(count) times") }
    }
    return [
      Figure(
        name: "find by service and account among \(storedCount)", value: times.median * 1000, unit: "ms", limit: 1)
    ]
  }

  /// Compares the program's peak memory for one match among very many items with its peak memory for one match among few
  /// items. SQLite finds a name with an index. A pattern requires that every item is decrypted.
  static func memory(program: String) throws -> [Figure] {
    let home = try TemporaryDeviceSet()
    // The memory of this process counts in the peak of the programs it starts, so other processes create the devices.
    for (name, count) in [("few", fewCount), ("many", storedCount)] {
      _ = try Run(CommandLine.arguments[0], [fillCommand, home.devices.path, name, String(count)])
    }
    func peak(_ device: String, _ arguments: [String]) throws -> Double {
      let find = ["item", "find", device, "--home", home.devices.path, "--no-input"]
      return try (0..<3).map { _ in try Run(program, find + arguments).peakMemory }.median
    }
    let searches = [
      ("a name", ["--service", "service-7.example.org"]), ("a pattern", ["--service", "service-7.*"]),
      ("a name, as JSON", ["--service", "service-7.example.org", "--json"]),
    ]
    return try searches.flatMap { name, arguments in
      let few = try peak("few", arguments)
      let many = try peak("many", arguments)
      return [
        Figure(
          name: "peak memory of item find by \(name), \(storedCount) items against \(fewCount)", value: many / few,
          unit: "times", limit: 1.15),
        Figure(
          name: "peak memory of item find by \(name) among \(storedCount)", value: many / 1_000_000, unit: "MB",
          limit: nil),
      ]
    }
  }

  static let fillCommand = "fill"

  /// Creates a device for the arguments `fill HOME NAME COUNT`, in a process that `memory(program:)` starts.
  static func fill(_ arguments: [String]) throws {
    guard arguments.count == 4, let count = Int(arguments[3]) else { exit(64) }
    _ = try createDevice(arguments[2], with: count, in: DeviceSet(path: arguments[1]))
  }

  /// Creates a device with `count` items, all different.
  private static func createDevice(
    _ name: String, with count: Int, in home: DeviceSet
  ) throws -> VirtualDevice {
    let device = try home.create(DeviceName(name), passcode: Secret(utf8: "1234"))
    let random = SystemRandomSource()
    let session = try device.openSession(.writing, verb: "benchmark")
    defer { session.invalidate() }
    // Each change adds up to `fewCount` items.
    for start in stride(from: 0, to: count, by: fewCount) {
      let items = (start..<min(start + fewCount, count)).map(item)
      try session.changeItems { (store, keys) throws(KeyhaulError) in
        try store.add(
          contentsOf: items, keys: keys, now: KeychainDate(secondsSinceReferenceDate: 0), random: random)
      }
    }
    try session.close()
    return device
  }

  private static func item(_ index: Int) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.service] = .string("service-\(index).example.org")
    item[.account] = .string("person-\(index)")
    item[.accessGroup] = .string("ABCDE12345.org.example.app")
    item.protection = .whenUnlocked
    item.secret = SensitiveBytes(copying: Array("secret \(index)".utf8))
    return item
  }
}
