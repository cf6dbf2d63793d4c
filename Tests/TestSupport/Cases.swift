import Foundation

/// Selects the test cases of a run: all of them if `KEYHAUL_EXHAUSTIVE=1`, as in `make test-exhaustive`, and otherwise
/// a part that is the same in every run.
package enum Cases {
  /// Whether this run includes all cases.
  package static let isExhaustive = ProcessInfo.processInfo.environment["KEYHAUL_EXHAUSTIVE"] == "1"

  /// Returns the number of cases that differ only by random numbers.
  package static func count(_ all: Int, quick: Int) -> Int { isExhaustive ? all : min(all, quick) }

  /// Returns up to `quick` elements: the first, the last, and one at random from each equal section between them. In an
  /// exhaustive run, returns all elements.
  package static func chosen<All: Collection>(_ all: All, quick: Int, seed: UInt64 = 1) -> [All.Element] {
    isExhaustive ? Array(all) : quickSelection(from: all, count: quick, seed: seed)
  }

  /// Returns the elements that `chosen` returns in a quick run.
  package static func quickSelection<All: Collection>(from all: All, count: Int, seed: UInt64) -> [All.Element] {
    let all = Array(all)
    guard count < all.count else { return all }
    guard count > 1, let first = all.first, let last = all.last else { return Array(all.prefix(count)) }
    let elementsBetween = all.dropFirst().dropLast()
    let sectionCount = count - 2
    func start(ofSection section: Int) -> Int {
      elementsBetween.startIndex + section * elementsBetween.count / sectionCount
    }
    var random = SeededRandom(seed: seed)
    let selected = (0..<sectionCount).map { section in
      let indexes = start(ofSection: section)..<start(ofSection: section + 1)
      return elementsBetween[Int.random(in: indexes, using: &random)]
    }
    return [first] + selected + [last]
  }
}
