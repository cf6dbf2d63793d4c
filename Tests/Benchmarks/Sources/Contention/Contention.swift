import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import VirtualDevice

/// Checks that eight processes can add and read on one device, each for 1,000 rounds, without a lost item or a hang.
///
///     swift run -c release --package-path Tests/Benchmarks Contention [PROCESSES ROUNDS]
@main
struct Contention {
  static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "worker", arguments.count == 4 {
      try work(home: arguments[1], worker: arguments[2], rounds: Int(arguments[3]) ?? 0)
    } else if arguments.count == 2 {
      try check(processCount: Int(arguments[0]) ?? 8, rounds: Int(arguments[1]) ?? 1000)
    } else {
      try check(processCount: 8, rounds: 1000)
    }
  }

  /// Runs the processes, counts the items, and exits with 1 if one is missing or a process failed.
  private static func check(processCount: Int, rounds: Int) throws {
    let expectedCount = processCount * rounds
    let home = try TemporaryDeviceSet()
    try home.devices.create(DeviceName("shared"), passcode: Secret(utf8: "1234"))
    let start = ContinuousClock.now
    let workers = try (0..<processCount).map { try startWorker($0, home: home.devices.path, rounds: rounds) }
    for worker in workers { worker.waitUntilExit() }
    let failedCount = workers.count { $0.terminationStatus != 0 }
    let device = try home.devices.device(DeviceName("shared"))
    let count = try device.withSession(.reading, verb: "contention") { (session) throws(KeyhaulError) in
      try session.itemCount
    }
    let seconds = String(format: "%.1f", start.duration(to: .now) / .seconds(1))
    print("\(count) of \(expectedCount) items found after \(seconds) s, \(failedCount) workers failed")
    let isComplete = count == expectedCount && failedCount == 0
    print(isComplete ? "1 passed, 0 failed" : "0 passed, 1 failed")
    exit(isComplete ? 0 : 1)
  }

  private static func startWorker(_ number: Int, home: String, rounds: Int) throws -> Process {
    let process = Process()
    process.executableURL = URL(filePath: CommandLine.arguments[0])
    process.arguments = ["worker", home, String(number), String(rounds)]
    try process.run()
    return process
  }

  /// Adds an item, closes the device, and finds the item again, for each round.
  private static func work(home: String, worker: String, rounds: Int) throws {
    let device = try DeviceSet(path: home).device(DeviceName("shared"))
    for round in 0..<rounds {
      var item = KeychainItem(kind: .genericPassword)
      item[.service] = .string("worker \(worker)")
      item[.account] = .string("round \(round)")
      item.protection = .afterFirstUnlock
      item.secret = SensitiveBytes(copying: Array("\(worker)/\(round)".utf8))
      let newItem = item
      try device.withSession(.writing, verb: "contention", wait: .seconds(120)) {
        (session) throws(KeyhaulError) in _ = try session.add(newItem)
      }
      let query = ItemQuery(
        kind: .genericPassword,
        attributes: [.service: .string("worker \(worker)"), .account: .string("round \(round)")])
      let matchCount = try device.withSession(.reading, verb: "contention", wait: .seconds(120)) {
        (session) throws(KeyhaulError) in try session.find(query).items.count
      }
      guard matchCount == 1 else {
        FileHandle.standardError.write(Data("worker \(worker): item \(round) was found \(matchCount) times\n".utf8))
        exit(1)
      }
    }
  }
}
