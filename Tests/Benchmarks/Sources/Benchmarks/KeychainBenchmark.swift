import DataProtection
import Foundation
import KeychainFormats
import KeychainStore
import VirtualDevice

/// The keychain of one device: adding one by one, and finding one among very many.
enum KeychainBenchmark {
  private static let addedCount = 10_000
  private static let storedCount = 100_000

  static func figures() throws -> [Figure] {
    let home = try TemporaryDeviceHome()
    return [try adding(home), try finding(home)]
  }

  private static func adding(_ home: TemporaryDeviceHome) throws -> Figure {
    let device = try home.home.create(DeviceName("adding"), passcode: Secret(utf8: "1234"))
    let session = try device.openSession(.writing, verb: "benchmark")
    defer { session.end() }
    let time = try seconds {
      for index in 0..<addedCount { try session.add(item(index)) }
    }
    return Figure(name: "\(addedCount) adds, one by one", value: time, unit: "s", limit: 5)
  }

  private static func finding(_ home: TemporaryDeviceHome) throws -> Figure {
    let device = try home.home.create(DeviceName("finding"), passcode: Secret(utf8: "1234"))
    let session = try device.openSession(.writing, verb: "benchmark")
    defer { session.end() }
    let items = (0..<storedCount).map(item)
    let random = SystemRandomSource()
    try session.changeItems { (store, keys) throws(KeychainStoreError) in
      try store.add(contentsOf: items, keys: keys, now: KeychainDate(secondsSinceReferenceDate: 0), random: random)
    }
    var times: [Double] = []
    for step in 0..<500 {
      let index = step &* 7_919 % storedCount
      let query = ItemQuery(
        kind: .genericPassword,
        attributes: [.service: .string("service-\(index).example.org"), .account: .string("person-\(index)")],
        wantsSecret: true)
      var count = 0
      times.append(try seconds { count = try session.find(query).items.count })
      guard count == 1 else { throw Run.Failure(description: "item \(index) was found \(count) times") }
    }
    return Figure(
      name: "find by service and account among \(storedCount)", value: times.median * 1000, unit: "ms", limit: 1)
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
