import Basics
import TestSupport
import Testing

@Suite("The cases that a quick run takes")
struct CasesTests {
  @Test("are the first, the last and one of each stretch between them, in their order", arguments: [2, 3, 7, 99])
  func part(count: Int) {
    let part = Cases.part(of: 0..<100, count: count, seed: 5)
    #expect(part.count == count && Set(part).count == count)
    #expect(part.first == 0 && part.last == 99 && part == part.sorted())
    let gaps = zip(part, part.dropFirst()).map { $1 - $0 }
    #expect(gaps.allSatisfy { $0 <= 2 * (98 / max(count - 2, 1) + 1) })
  }

  @Test("are all where there are no more, and the first alone where it is one")
  func edges() {
    #expect(Cases.part(of: [1, 2, 3], count: 3, seed: 1) == [1, 2, 3])
    #expect(Cases.part(of: [1, 2, 3], count: 9, seed: 1) == [1, 2, 3])
    #expect(Cases.part(of: [1, 2, 3], count: 1, seed: 1) == [1])
    #expect(Cases.part(of: [Int](), count: 4, seed: 1) == [])
  }

  @Test("are the same in every run, and others with another seed")
  func seeded() {
    let part = Cases.part(of: 0..<1000, count: 10, seed: 1)
    #expect(part == Cases.part(of: 0..<1000, count: 10, seed: 1))
    #expect(part != Cases.part(of: 0..<1000, count: 10, seed: 2))
  }

  @Test("are a part, unless the run is exhaustive")
  func exhaustive() {
    #expect(Cases.count(50, quick: 10) == (Cases.areAllRun ? 50 : 10))
    #expect(Cases.count(5, quick: 10) == 5)
    #expect(Cases.chosen(0..<50, quick: 10).count == (Cases.areAllRun ? 50 : 10))
  }
}
