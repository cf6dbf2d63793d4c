import Basics
import Foundation
import TestSupport
import Testing

@Suite("Two phones and a backup that anything happens to")
struct SoakTests {
  /// In whole or parts of minutes; `make -C Tests soak` sets it. A few walks elsewhere.
  private static let minutes = ProcessInfo.processInfo.environment["KEYHAUL_SOAK_MINUTES"].flatMap(Double.init)
  private static let seed = ProcessInfo.processInfo.environment["KEYHAUL_SOAK_SEED"].flatMap { UInt64($0) } ?? 1

  /// Items are planted and changed on phones, backups made, items in them changed, passwords too, and backups restored;
  /// one step in three is cut off by a death at one of its calls and done again. Each lane of a walk is a sequence.
  @Test("is what each step makes of it, after deaths too, and what a plan says is what the phone then holds")
  func soak() throws {
    let (end, quick) = (Date(timeIntervalSinceNow: (Self.minutes ?? 0) * 60), Self.minutes == nil)
    let laneCount = quick ? 5 : 100
    var (seed, walks, restores, deaths) = (Self.seed << 32, 0, 0, 0)
    while quick ? walks < Cases.count(60, quick: 6) : Date() < end {
      let walk = Walk(seed: seed, laneCount: laneCount)
      let walker = try Walker(walk)
      if let difference = walker.run() {
        let smallest = walk.shrunk { (try? Walker($0).run()) != nil }
        Issue.record("\(difference)\nsmallest: \(smallest): \((try? Walker(smallest).run()) ?? difference)")
        return
      }
      (seed, walks) = (seed + 1, walks + 1)
      (restores, deaths) = (restores + walker.restoreCount, deaths + walker.deathCount)
      if !quick, walks % 20 == 0 { report(seed, walks, laneCount, restores, deaths) }
    }
    if !quick { report(seed, walks, laneCount, restores, deaths) }
    #expect(restores >= walks && walks > 0)
  }

  private func report(_ next: UInt64, _ walks: Int, _ laneCount: Int, _ restores: Int, _ deaths: Int) {
    print(
      "soak: \(walks * laneCount) sequences in \(walks) walks, \(restores) restores as planned, \(deaths) deaths; next seed \(next)"
    )
  }
}
