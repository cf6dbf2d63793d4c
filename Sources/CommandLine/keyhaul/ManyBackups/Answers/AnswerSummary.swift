import KeyhaulKit

/// What many answers came to.
struct AnswerSummary: Equatable, Sendable {
  /// How many backups there were for each exit code.
  private(set) var countByCode: [Int32: Int] = [:]
  private var idByCode: [Int32: String] = [:]
  /// How many of them had been answered before.
  private(set) var resumedCount = 0
  /// The first one that had no fault.
  private(set) var firstWithoutFault: String?
  var passedOver = PassedOver()

  init() {}

  mutating func add(_ answer: BackupAnswer, isResumed: Bool) {
    countByCode[answer.code, default: 0] += 1
    idByCode[answer.code] = answer.id
    if isResumed { resumedCount += 1 }
    if answer.code == 0, firstWithoutFault == nil { firstWithoutFault = answer.path }
  }

  var count: Int { countByCode.values.reduce(0, +) }
  var faultCount: Int { count - countByCode[0, default: 0] }

  /// How the call ends: 3 where one of them ended with anything but 0; 2 where nothing but what a flag asks to be told of
  /// was found.
  var status: CommandStatus {
    let codes = Set(countByCode.keys).subtracting([CommandStatus.ok.code])
    if codes.isEmpty { return .ok }
    return codes == [CommandStatus.differs.code] ? .differs : .partial
  }

  /// "12 backups: 9 ended with 0, 2 with 13 (damaged) and 1 with 12 (wrong-password)."
  var sentence: String {
    let codes = countByCode.sorted { $0.key < $1.key }
    let parts = codes.enumerated().map { index, entry in
      "\(Amounts.grouped(entry.value)) \(index == 0 ? "ended with" : "with") \(entry.key)"
        + (entry.key == 0 ? "" : " (\(idByCode[entry.key] ?? "?"))")
    }
    return "\(Amounts.count(count, "backup")): \(Amounts.list(parts))."
  }

  /// What else there is to say: what was answered before, and what was passed over.
  var remarks: [String] {
    var lines: [String] = []
    if resumedCount > 0 {
      lines.append("\(Amounts.count(resumedCount, "result")) \(resumedCount == 1 ? "was" : "were") already there.")
    }
    let passed = passedOver.counts.filter { $0.count > 0 }.map { Amounts.count($0.count, $0.noun, plural: $0.plural) }
    if !passed.isEmpty { lines.append("Skipped in folders: \(Amounts.list(passed)).") }
    return lines
  }

  var json: JSONValue {
    [
      "backups": .count(count), "without_fault": .count(count - faultCount),
      "by_code": .object(
        countByCode.sorted { $0.key < $1.key }.map { (String($0.key), .count($0.value)) }),
      "answered_before": .count(resumedCount),
      "passed_over": .object(passedOver.counts.map { ($0.name, .count($0.count)) }),
    ]
  }
}
