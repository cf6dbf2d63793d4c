import KeychainFormats
import KeychainRules
import KeyhaulKit
import TestSupport

/// What happens to two phones and a backup, one thing after another, on many lanes side by side: each lane has items of
/// its own accounts, so that none has to do with another and each is a sequence by itself. Everything follows from the
/// seed, the lanes and the steps, and what a lane does in a step depends on no other lane and step: both can be left out.
struct Walk: CustomStringConvertible {
  enum Action: String, CaseIterable { case plant, change, backUp, edit, rekey, restore, restoreAtHome }

  struct Step: CustomStringConvertible {
    let number: UInt64
    let action: Action
    let policy: ExistingItemPolicy
    /// After how many calls of the file system the process dies at first; `nil` if it lives.
    let death: Int?

    var description: String { "\(number) \(action)" + (death.map { " dying after \($0)" } ?? "") + " \(policy)" }
  }

  let seed: UInt64
  var lanes: [UInt64]
  var steps: [Step]

  /// Items on both phones, a backup, some changes of either, and a restore at the end.
  init(seed: UInt64, laneCount: Int) {
    self.seed = seed
    lanes = (0..<UInt64(laneCount)).map { $0 }
    var random = SeededRandom(seed: seed)
    let between: [Action] = [.change, .edit, .edit, .rekey, .restore, .restoreAtHome, .backUp]
    var actions: [Action] = [.plant, .change].dropLast(Int.random(in: 0...1, using: &random)) + [.backUp]
    actions += (0..<Int.random(in: 0...3, using: &random)).compactMap { _ in between.randomElement(using: &random) }
    actions.append(Int.random(in: 0..<4, using: &random) == 0 ? .restoreAtHome : .restore)
    steps = actions.enumerated().map { number, action in
      Step(
        number: UInt64(number), action: action,
        policy: ExistingItemPolicy.allCases.randomElement(using: &random) ?? .merge,
        death: Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 0..<40, using: &random) : nil)
    }
  }

  /// Random numbers of one lane in one step.
  func random(_ lane: UInt64, _ step: Step) -> SeededRandom {
    SeededRandom(seed: seed &* 0x9E37_79B9_7F4A_7C15 ^ lane &* 0xC2B2_AE3D_27D4_EB4F ^ step.number &* 0x1656_67B1)
  }

  /// What the accounts of a lane end with.
  static func mark(_ lane: UInt64) -> String { "#\(lane)" }

  /// The smallest walk within this one that still fails as `fails` says: lanes are left out first, then steps.
  func shrunk(_ fails: (Walk) -> Bool) -> Walk {
    var smallest = self
    if let alone = lanes.lazy.map({ lane in smallest.with { $0.lanes = [lane] } }).first(where: fails) {
      smallest = alone
    }
    for step in smallest.steps {
      let shorter = smallest.with { walk in walk.steps.removeAll { $0.number == step.number } }
      if fails(shorter) { smallest = shorter }
    }
    return smallest
  }

  private func with(_ change: (inout Walk) -> Void) -> Walk {
    var changed = self
    change(&changed)
    return changed
  }

  var description: String { "seed \(seed), lanes \(lanes), steps \(steps)" }
}
