/// Compares words, to suggest the correction of a mistyped one.
package enum EditDistance {
  /// Returns the number of insertions, deletions, replacements and swaps of neighbors (optimal string alignment).
  package static func between(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left), Array(right))
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
      var current = [row]
      for column in 1...right.count {
        let replaced = last[column - 1] + (left[row - 1] == right[column - 1] ? 0 : 1)
        var best = min(replaced, last[column] + 1, current[column - 1] + 1)
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          best = min(best, beforeLast[column - 2] + 1)
        }
        current.append(best)
      }
      (beforeLast, last) = (last, current)
    }
    return last[right.count]
  }

  /// Returns the most likely intended word: at most a third of its letters differ, at most three, and never all of
  /// them.
  package static func nearest(to word: String, among candidates: [String]) -> String? {
    guard word.count <= 64 else { return nil }
    let near = candidates.map { (name: $0, distance: between(word.lowercased(), $0)) }.filter {
      let count = $0.name.count
      return $0.distance <= min(3, max(1, count / 3), count - 1) || $0.name.hasPrefix(word) && word.count > 1
    }
    return near.min { ($0.distance, $0.name) < ($1.distance, $1.name) }?.name
  }
}
