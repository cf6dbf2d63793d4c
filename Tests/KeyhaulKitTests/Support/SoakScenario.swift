import KeychainFormats
import KeychainRules
import KeyhaulKit
import TestSupport

/// A random sequence of steps with two phones and a backup, on many independent lanes. Each lane has its own accounts.
///
/// The seed, the lanes and the steps determine everything. A lane's action in a step does not depend on other lanes or
/// steps, so lanes and steps can be left out.
struct SoakScenario: CustomStringConvertible {
  enum Action: String, CaseIterable { case insert, change, backUp, edit, rekey, restore, restoreToSource }

  struct Step: CustomStringConvertible {
    let number: UInt64
    let action: Action
    let policy: ExistingItemPolicy
    /// The number of file-system calls before the first attempt crashes; `nil` if it does not crash.
    let crash: Int?

    var description: String { "\(number) \(action)" + (crash.map { " crashing after \($0)" } ?? "") + " \(policy)" }
  }

  let seed: UInt64
  var lanes: [UInt64]
  var steps: [Step]

  /// Creates a scenario: items on both phones, a backup, some changes, and a restore.
  init(seed: UInt64, laneCount: Int) {
    self.seed = seed
    lanes = (0..<UInt64(laneCount)).map { $0 }
    var random = SeededRandom(seed: seed)
    // Half of the scenarios have no change before the backup.
    var actions: [Action] = [.insert, .change].dropLast(Int.random(in: 0...1, using: &random)) + [.backUp]
    let nextActions: [Action] = [.change, .edit, .edit, .rekey, .restore, .restoreToSource, .backUp]
    actions += (0..<Int.random(in: 0...3, using: &random)).compactMap { _ in nextActions.randomElement(using: &random) }
    actions.append(Int.random(in: 0..<4, using: &random) == 0 ? .restoreToSource : .restore)
    steps = actions.enumerated().map { number, action in
      Step(
        number: UInt64(number), action: action,
        policy: ExistingItemPolicy.allCases.randomElement(using: &random) ?? .merge,
        crash: Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 0..<40, using: &random) : nil)
    }
  }

  /// Returns a generator that depends only on the seed, the lane and the step.
  func random(_ lane: UInt64, _ step: Step) -> SeededRandom {
    // Large odd factors make the seeds of neighboring lanes and steps very different.
    SeededRandom(seed: seed &* 0x9E37_79B9_7F4A_7C15 ^ lane &* 0xC2B2_AE3D_27D4_EB4F ^ step.number &* 0x1656_67B1)
  }

  /// Returns the suffix of a lane's accounts.
  static func accountSuffix(_ lane: UInt64) -> String { "#\(lane)" }

  /// Returns the smallest part of the scenario that still fails, by leaving out lanes, then steps.
  func shrunk(_ fails: (SoakScenario) -> Bool) -> SoakScenario {
    var smallest = self
    if let single = lanes.lazy.map({ lane in smallest.with { $0.lanes = [lane] } }).first(where: fails) {
      smallest = single
    }
    for step in smallest.steps {
      let shorter = smallest.with { scenario in scenario.steps.removeAll { $0.number == step.number } }
      if fails(shorter) { smallest = shorter }
    }
    return smallest
  }

  private func with(_ change: (inout SoakScenario) -> Void) -> SoakScenario {
    var changed = self
    change(&changed)
    return changed
  }

  var description: String { "seed \(seed), lanes \(lanes), steps \(steps)" }
}
