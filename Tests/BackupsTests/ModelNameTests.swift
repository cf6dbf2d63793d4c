import Basics
import Testing

@testable import Backups

@Suite("Names of models")
struct ModelNameTests {
  @Test("Known product types have Apple's names, and unknown ones have none")
  func names() {
    for (type, name) in [
      ("iPhone1,1", "iPhone"), ("iPhone10,3", "iPhone X"), ("iPhone10,6", "iPhone X"), ("iPhone15,2", "iPhone 14 Pro"),
      ("iPad2,5", "iPad mini"), ("iPod9,1", "iPod touch (7th generation)"),
    ] {
      #expect(ModelName.of(type) == name)
    }
    for type in ["iPhone99,1", "iphone15,2", "iPhone15,2 ", ""] { #expect(ModelName.of(type) == nil) }
  }

  @Test("The models on sale since 2024 have Apple's names")
  func recent() {
    for (type, name) in [
      ("iPhone17,3", "iPhone 16"), ("iPhone17,5", "iPhone 16e"), ("iPhone18,1", "iPhone 17 Pro"),
      ("iPhone18,2", "iPhone 17 Pro Max"), ("iPhone18,3", "iPhone 17"), ("iPhone18,4", "iPhone Air"),
      ("iPhone18,5", "iPhone 17e"), ("iPad14,8", "iPad Air 11-inch (M2)"), ("iPad14,11", "iPad Air 13-inch (M2)"),
      ("iPad15,4", "iPad Air 11-inch (M3)"), ("iPad15,8", "iPad (A16)"), ("iPad16,1", "iPad mini (A17 Pro)"),
      ("iPad16,6", "iPad Pro 13-inch (M4)"), ("iPad16,9", "iPad Air 11-inch (M4)"),
      ("iPad17,1", "iPad Pro 11-inch (M5)"), ("iPad17,4", "iPad Pro 13-inch (M5)"),
    ] {
      #expect(ModelName.of(type) == name)
    }
  }

  @Test("Each product type occurs once")
  func unique() {
    let types = ModelName.models.flatMap(\.types)
    #expect(Set(types).count == types.count && Set(ModelName.models.map(\.name)).count == ModelName.models.count)
    #expect(types.allSatisfy { $0.wholeMatch(of: /(iPhone|iPad|iPod)[0-9]+,[0-9]+/) != nil })
  }
}
