/// Compares words, to suggest the intended word for a mistyped word.
package enum EditDistance {
  /// Returns the number of insertions, deletions, replacements and swaps of neighbors (optimal string alignment).
  package static func between(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left), Array(right))
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    // Column c of row r is the distance between the first r letters of `left` and the first c letters of `right`.
    var rowBeforePrevious: [Int] = []
    var previousRow = Array(0...right.count)
    for row in 1...left.count {
      var currentRow = [row]
      for column in 1...right.count {
        let replacement = previousRow[column - 1] + (left[row - 1] == right[column - 1] ? 0 : 1)
        var best = min(replacement, previousRow[column] + 1, currentRow[column - 1] + 1)
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          best = min(best, rowBeforePrevious[column - 2] + 1)
        }
        currentRow.append(best)
      }
      (rowBeforePrevious, previousRow) = (previousRow, currentRow)
    }
    return previousRow[right.count]
  }

  /// Returns the most likely intended word, or `nil` if no candidate is near.
  ///
  /// A candidate is near if it begins with the word, which must have at least two letters. It is also near if at most a
  /// third of its letters differ. This limit is at least one and at most three letters, and always less than the
  /// candidate's length. Upper and lower case are the same.
  package static func nearest(to word: String, among candidates: [String]) -> String? {
    // Comparing a very long word would take too long.
    guard word.count <= 64 else { return nil }
    let word = word.lowercased()
    let nearCandidates = candidates.map { (name: $0, distance: between(word, $0.lowercased())) }.filter { candidate in
      let letterCount = candidate.name.count
      let maximumDistance = min(3, max(1, letterCount / 3), letterCount - 1)
      let isCompletion = word.count > 1 && candidate.name.lowercased().hasPrefix(word)
      return isCompletion || candidate.distance <= maximumDistance
    }
    return nearCandidates.min { ($0.distance, $0.name) < ($1.distance, $1.name) }?.name
  }
}
