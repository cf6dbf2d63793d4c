import Testing

@testable import BackupArchive

@Suite("The name of a model")
struct ModelNameTests {
  @Test("is Apple's for types that the table has, and nothing for others")
  func names() {
    for (type, name) in [
      ("iPhone1,1", "iPhone"), ("iPhone10,3", "iPhone X"), ("iPhone10,6", "iPhone X"), ("iPhone15,2", "iPhone 14 Pro"),
      ("iPad2,5", "iPad mini"), ("iPod9,1", "iPod touch (7th generation)"),
    ] {
      #expect(ModelName.of(type) == name)
    }
    for type in ["iPhone99,1", "iphone15,2", "iPhone15,2 ", ""] { #expect(ModelName.of(type) == nil) }
  }

  @Test("stands once for each type")
  func unique() {
    let types = ModelName.models.flatMap(\.types)
    #expect(Set(types).count == types.count && Set(ModelName.models.map(\.name)).count == ModelName.models.count)
    #expect(types.allSatisfy { $0.wholeMatch(of: /(iPhone|iPad|iPod)[0-9]+,[0-9]+/) != nil })
  }
}
