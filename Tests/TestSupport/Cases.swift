import Foundation

/// Selects the test cases of a run: all of them if `KEYHAUL_EXHAUSTIVE=1`, as in `make test-exhaustive`, and otherwise
/// a part that is the same in every run.
package enum Cases {
  /// Whether this run includes all cases.
  package static let areAllRun = ProcessInfo.processInfo.environment["KEYHAUL_EXHAUSTIVE"] == "1"

  /// Returns the number of cases that differ only by random numbers.
  package static func count(_ all: Int, quick: Int) -> Int { areAllRun ? all : min(all, quick) }

  /// Returns a number of elements: the first, the last, and one at random from each equal section between them. In an
  /// exhaustive run, returns all elements.
  package static func chosen<All: Collection>(_ all: All, quick: Int, seed: UInt64 = 1) -> [All.Element] {
    areAllRun ? Array(all) : part(of: all, count: quick, seed: seed)
  }

  /// Returns the elements that `chosen` returns in a quick run.
  package static func part<All: Collection>(of all: All, count: Int, seed: UInt64) -> [All.Element] {
    let all = Array(all)
    guard count < all.count else { return all }
    guard count > 1, let first = all.first, let last = all.last else { return Array(all.prefix(count)) }
    var random = SeededRandom(seed: seed)
    let (innerCount, sectionCount) = (all.count - 2, count - 2)
    let chosen = (0..<sectionCount).map { section in
      let bounds = 1 + section * innerCount / sectionCount..<1 + (section + 1) * innerCount / sectionCount
      return all[Int.random(in: bounds, using: &random)]
    }
    return [first] + chosen + [last]
  }
}
