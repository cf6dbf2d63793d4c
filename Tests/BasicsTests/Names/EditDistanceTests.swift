import Basics
import Testing

@Suite("Suggestions for mistyped words")
struct EditDistanceTests {
  @Test("Only a similar word is suggested")
  func distance() {
    #expect(EditDistance.between("restore", "restroe") == 1)
    #expect(EditDistance.between("", "abc") == 3)
    #expect(EditDistance.between("kitten", "sitting") == 3)
    #expect(EditDistance.nearest(to: "x", among: ["plan", "demo"]) == nil)
    #expect(EditDistance.nearest(to: "PLAN", among: ["plan", "demo"]) == "plan")
    #expect(EditDistance.nearest(to: String(repeating: "a", count: 10_000), among: ["plan"]) == nil)
  }

  @Test("A word without a common letter is not suggested")
  func nothingRight() {
    #expect(EditDistance.nearest(to: "x", among: ["n"]) == nil)
    #expect(EditDistance.nearest(to: "x", among: ["nx"]) == "nx")
    #expect(EditDistance.nearest(to: "no", among: ["n"]) == nil)
  }
}
