import Basics
import Testing

@Suite("Suggestions for mistyped words")
struct EditDistanceTests {
  @Test("The distance is the number of insertions, deletions, replacements and swaps")
  func distance() {
    #expect(EditDistance.between("restore", "restroe") == 1)
    #expect(EditDistance.between("", "abc") == 3)
    #expect(EditDistance.between("kitten", "sitting") == 3)
  }

  @Test("Only a similar word is suggested, regardless of case")
  func suggestions() {
    #expect(EditDistance.nearest(to: "x", among: ["plan", "demo"]) == nil)
    #expect(EditDistance.nearest(to: "PLAN", among: ["plan", "demo"]) == "plan")
    #expect(EditDistance.nearest(to: "MIG", among: ["migrates", "mine"]) == "migrates")
    #expect(EditDistance.nearest(to: "photos", among: ["PHOTOS", "Photon"]) == "PHOTOS")
    #expect(EditDistance.nearest(to: String(repeating: "a", count: 10_000), among: ["plan"]) == nil)
  }

  @Test("A word of one letter is never suggested, and a word of two letters only if one of them is right")
  func shortWords() {
    #expect(EditDistance.nearest(to: "x", among: ["n"]) == nil)
    #expect(EditDistance.nearest(to: "x", among: ["nx"]) == "nx")
    #expect(EditDistance.nearest(to: "no", among: ["n"]) == nil)
  }
}
