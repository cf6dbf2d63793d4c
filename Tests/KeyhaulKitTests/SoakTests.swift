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
    let (end, quick) = (Date(timeIntervalSinceNow: (Self.minutes ?? 0) * 60), Self.minutes == nil)
    let laneCount = quick ? 5 : 100
    var (seed, scenarioCount, restoreCount, crashCount) = (Self.seed << 32, 0, 0, 0)
    while quick ? scenarioCount < Cases.count(60, quick: 6) : Date() < end {
      let scenario = SoakScenario(seed: seed, laneCount: laneCount)
      let runner = try SoakRunner(scenario)
      if let difference = runner.run() {
        let smallest = scenario.shrunk { (try? SoakRunner($0).run()) != nil }
        Issue.record("\(difference)\nsmallest: \(smallest): \((try? SoakRunner(smallest).run()) ?? difference)")
        return
      }
      (seed, scenarioCount) = (seed + 1, scenarioCount + 1)
      (restoreCount, crashCount) = (restoreCount + runner.restoreCount, crashCount + runner.crashCount)
      if !quick, scenarioCount % 20 == 0 { report(seed, scenarioCount, laneCount, restoreCount, crashCount) }
    }
    if !quick { report(seed, scenarioCount, laneCount, restoreCount, crashCount) }
    #expect(restoreCount >= scenarioCount && scenarioCount > 0)
  }

  private func report(_ next: UInt64, _ scenarioCount: Int, _ laneCount: Int, _ restoreCount: Int, _ crashCount: Int) {
    print(
      "soak: \(scenarioCount * laneCount) sequences in \(scenarioCount) scenarios, \(restoreCount) restores as planned, \(crashCount) crashes; next seed \(next)"
    )
  }
}
