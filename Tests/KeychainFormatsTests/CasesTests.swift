import Basics
import TestSupport
import Testing

@Suite("Selection of test cases for a quick run")
struct CasesTests {
  @Test(
    "A quick run includes the first case, the last case and one case of each section between them, in order",
    arguments: [2, 3, 7, 99])
  func sections(count: Int) {
    let selection = Cases.quickSelection(from: 0..<100, count: count, seed: 5)
    #expect(selection.count == count && Set(selection).count == count)
    #expect(selection.first == 0 && selection.last == 99 && selection == selection.sorted())
    let gaps = zip(selection, selection.dropFirst()).map { $1 - $0 }
    let longestSection = 98 / max(count - 2, 1) + 1
    #expect(gaps.allSatisfy { $0 <= 2 * longestSection })
  }

  @Test("A quick run includes all cases if there are few, and the first case if it includes a single case")
  func edges() {
    #expect(Cases.quickSelection(from: [1, 2, 3], count: 3, seed: 1) == [1, 2, 3])
    #expect(Cases.quickSelection(from: [1, 2, 3], count: 9, seed: 1) == [1, 2, 3])
    #expect(Cases.quickSelection(from: [1, 2, 3], count: 1, seed: 1) == [1])
    #expect(Cases.quickSelection(from: [Int](), count: 4, seed: 1) == [])
  }

  @Test("Quick runs include the same cases if their seeds are equal, and other cases if not")
  func seeded() {
    let selection = Cases.quickSelection(from: 0..<1000, count: 10, seed: 1)
    #expect(selection == Cases.quickSelection(from: 0..<1000, count: 10, seed: 1))
    #expect(selection != Cases.quickSelection(from: 0..<1000, count: 10, seed: 2))
  }

  @Test("An exhaustive run includes all cases")
  func exhaustive() {
    #expect(Cases.count(50, quick: 10) == (Cases.isExhaustive ? 50 : 10))
    #expect(Cases.count(5, quick: 10) == 5)
    #expect(Cases.chosen(0..<50, quick: 10).count == (Cases.isExhaustive ? 50 : 10))
  }
}
