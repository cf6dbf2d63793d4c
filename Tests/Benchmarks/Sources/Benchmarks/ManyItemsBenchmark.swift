import Basics
import Foundation
import KeychainCrypto
import KeychainFormats

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Measures decrypting and decoding the items of a very large keychain file, one after another on one core.
///
/// The measured code runs in its own process, so that no other work counts in the peak memory.
enum ManyItemsBenchmark {
  static let argument = "--open-many-items"
  private static let count = 100_000
  private static let repetitions = 5
  private static let password = "correct horse"

  static func figures() throws -> [Figure] {
    let directory = FileManager.default.temporaryDirectory.appending(path: "keyhaul-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let file = directory.appending(path: "keychain")
    let result = directory.appending(path: "result")
    let byteCount = try write(to: file)
    let arguments = [argument] + [file, result].map { $0.path(percentEncoded: false) }
    let runs = try (0..<repetitions).map { _ in
      _ = try Run(CommandLine.arguments[0], arguments)
      let numbers = try String(contentsOf: result, encoding: .utf8).split(separator: " ").compactMap { Double($0) }
      guard numbers.count == 2 else { throw Run.Failure(description: "no result of \(argument)") }
      return (seconds: numbers[0], memory: numbers[1])
    }
    return [
      Figure(
        name: "open and decode of \(count) items, seconds of one core for 250,000",
        value: runs.map(\.seconds).median / Double(count) * 250_000, unit: "s", limit: 1),
      Figure(
        name: "open and decode of \(count) items, peak memory to keychain file",
        value: (runs.map(\.memory).max() ?? 0) / Double(byteCount), unit: "times", limit: 3),
    ]
  }

  /// Reads the file in the measured process, and decrypts every item. Writes two numbers to the result file: the processor
  /// time since the file was read, and the increase of the peak memory.
  static func run(_ arguments: [String]) throws {
    guard arguments.count == 2 else { return }
    let keys = try Self.keys()
    var decryptedCount = 0
    let memoryBefore = peakMemory
    var timeBefore = 0.0
    do {
      let bytes = try Array(Data(contentsOf: URL(filePath: arguments[0])))
      timeBefore = processorSeconds
      for entry in try KeychainBackupFile(parsing: bytes).entries {
        guard let blob = entry.blob else { continue }
        let item = try keys.open(blob: blob, kind: entry.kind)
        if item.secret != nil { decryptedCount += 1 }
      }
    }
    guard decryptedCount == count else { throw Run.Failure(description: "\(decryptedCount) items decrypted") }
    let result = "\(processorSeconds - timeBefore) \(peakMemory - memoryBefore)"
    try result.write(to: URL(filePath: arguments[1]), atomically: false, encoding: .utf8)
  }

  private static var processorSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// The peak memory of this process in bytes, without the memory of the process that started it.
  private static var peakMemory: Double {
    #if canImport(Darwin)
      var usage = rusage()
      getrusage(RUSAGE_SELF, &usage)
      return Double(usage.ru_maxrss)
    #else
      let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
      let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
      let kilobytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }
      return (kilobytes ?? 0) * 1024
    #endif
  }

  private static func keys() throws -> ClassKeys {
    let random = SeededRandomSource(seed: "many items")
    let password: Secret? = Secret(utf8: Self.password)
    let unlockedKeybag = try BackupKeybag.make(
      password: password, deviceKey: try HardwareUID(from: random).deviceKey(), rounds: 1, random: random)
    return unlockedKeybag.classKeys
  }

  /// Writes a keychain file, and returns its size in bytes.
  private static func write(to url: URL) throws -> Int {
    let keys = try keys()
    var entries: [KeychainBackupFile.Entry] = []
    for index in 0..<count {
      let kind: ItemKind = index.isMultiple(of: 4) ? .internetPassword : .genericPassword
      var item = KeychainItem(kind: kind)
      item[.account] = .string("person-\(index)@example.org")
      item[kind == .genericPassword ? .service : .server] = .string("service-\(index).example.org")
      item[.label] = .string("Account \(index)")
      item[.accessGroup] = .string("ABCDE12345.org.example.app")
      item[.creationDate] = .date(KeychainDate(secondsSinceReferenceDate: 700_000_000.25 + Double(index)))
      item[.modificationDate] = .date(KeychainDate(secondsSinceReferenceDate: 750_000_000.125 + Double(index)))
      item[.synchronizable] = .integer(0)
      item[.tombstone] = .integer(0)
      item.protection = index.isMultiple(of: 2) ? .whenUnlocked : .afterFirstUnlock
      item.secret = SensitiveBytes(copying: Array("secret number \(index)".utf8))
      entries.append(.init(kind: kind, blob: try keys.seal(item, as: .backup).serialized()))
    }
    let bytes = try KeychainBackupFile(keybagUUID: nil, entries: entries).serialized()
    try Data(bytes).write(to: url)
    return bytes.count
  }
}
