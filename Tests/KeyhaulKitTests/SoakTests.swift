import Basics
import Foundation
import TestSupport
import Testing

@Suite("Random sequences of changes, backups and restores")
struct SoakTests {
  /// The duration in minutes, which `make -C Tests soak` sets. Otherwise only a few scenarios run.
  private static let minutes = ProcessInfo.processInfo.environment["KEYHAUL_SOAK_MINUTES"].flatMap(Double.init)
  private static let seed = ProcessInfo.processInfo.environment["KEYHAUL_SOAK_SEED"].flatMap { UInt64($0) } ?? 1

  /// Adds and changes items on phones, makes and edits backups, changes passwords, and restores. One step in three is
  /// interrupted by a simulated crash and repeated. Each lane of a scenario is an independent sequence.
  @Test("Each step of a random sequence has the expected result, even after a simulated crash")
  func soak() throws {
    let isQuick = Self.minutes == nil
    let end = Date(timeIntervalSinceNow: (Self.minutes ?? 0) * 60)
    let laneCount = isQuick ? 5 : 100
    var totals = Totals(nextSeed: Self.seed << 32)
    while isQuick ? totals.scenarioCount < Cases.count(60, quick: 6) : Date() < end {
      let scenario = SoakScenario(seed: totals.nextSeed, laneCount: laneCount)
      let runner = try SoakRunner(scenario)
      if let difference = runner.run() {
        let smallest = scenario.shrunk { (try? SoakRunner($0).run()) != nil }
        Issue.record("\(difference)\nsmallest: \(smallest): \((try? SoakRunner(smallest).run()) ?? difference)")
        return
      }
      totals.add(runner)
      if !isQuick, totals.scenarioCount % 20 == 0 { totals.report(laneCount: laneCount) }
    }
    if !isQuick { totals.report(laneCount: laneCount) }
    #expect(totals.restoreCount >= totals.scenarioCount && totals.scenarioCount > 0)
  }

  private struct Totals {
    var nextSeed: UInt64
    private(set) var scenarioCount = 0
    private(set) var restoreCount = 0
    private var crashCount = 0

    init(nextSeed: UInt64) { self.nextSeed = nextSeed }

    mutating func add(_ runner: SoakRunner) {
      nextSeed += 1
      scenarioCount += 1
      restoreCount += runner.restoreCount
      crashCount += runner.crashCount
    }

    func report(laneCount: Int) {
      print(
        "soak: \(scenarioCount * laneCount) sequences in \(scenarioCount) scenarios, \(restoreCount) restores as "
          + "planned, \(crashCount) crashes; next seed \(nextSeed)")
    }
  }
}
