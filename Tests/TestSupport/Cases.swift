import Foundation

/// How many of very many cases a run takes: all of them where `KEYHAUL_EXHAUSTIVE=1`, as `make test-exhaustive` sets it,
/// and a part that is the same in every run elsewhere.
public enum Cases {
  /// Whether this run takes them all.
  public static let areAllRun = ProcessInfo.processInfo.environment["KEYHAUL_EXHAUSTIVE"] == "1"

  /// A number of cases that differ by their random numbers alone.
  public static func count(_ all: Int, quick: Int) -> Int { areAllRun ? all : min(all, quick) }

  /// The first and the last of a list, and between them one, chosen by the seed, out of each of equal stretches.
  public static func chosen<All: Collection>(_ all: All, quick: Int, seed: UInt64 = 1) -> [All.Element] {
    areAllRun ? Array(all) : part(of: all, count: quick, seed: seed)
  }

  /// What a quick run takes.
  public static func part<All: Collection>(of all: All, count: Int, seed: UInt64) -> [All.Element] {
    let all = Array(all)
    guard count < all.count else { return all }
    guard count > 1, let first = all.first, let last = all.last else { return Array(all.prefix(count)) }
    var random = SeededRandom(seed: seed)
    let inner = (all.count - 2, count - 2)
    let chosen = (0..<inner.1).map { stretch in
      let bounds = 1 + stretch * inner.0 / inner.1..<1 + (stretch + 1) * inner.0 / inner.1
      return all[Int.random(in: bounds, using: &random)]
    }
    return [first] + chosen + [last]
  }
}
