import KeychainFormats
import Testing

@Suite("A map of attributes")
struct AttributeMapTests {
  /// A number that follows from the one before, for steps that are the same in every run.
  private struct Steps {
    var state: UInt64
    mutating func next(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % limit
    }
  }

  @Test("holds what a dictionary holds, after any changes, few codes and very many", arguments: [4, 30, 200])
  func changes(codeCount: Int) {
    var (map, dictionary): (AttributeMap<Int>, [AttributeCode: Int]) = ([:], [:])
    var steps = Steps(state: UInt64(codeCount))
    for step in 0..<4000 {
      let code = AttributeCode(rawValue: "code\(steps.next(codeCount))")
      let value: Int? = steps.next(3) == 0 ? nil : step
      map[code] = value
      dictionary[code] = value
      #expect(map.count == dictionary.count && map[code] == dictionary[code])
    }
    for number in 0..<codeCount {
      let code = AttributeCode(rawValue: "code\(number)")
      #expect(map[code] == dictionary[code])
    }
    #expect(Set(map.keys) == Set(dictionary.keys))
    #expect(map == AttributeMap(dictionary.map { ($0.key, $0.value) }.shuffled()))
    #expect(map.filter { $0.value.isMultiple(of: 2) }.count == dictionary.count { $0.value.isMultiple(of: 2) })
  }

  @Test("is equal where codes and values are, and in no other case")
  func equality() {
    let map: AttributeMap<Int> = ["acct": 1, "svce": 2]
    #expect(map == ["svce": 2, "acct": 1])
    #expect(map != ["acct": 1] && map != ["acct": 1, "svce": 3] && map != ["acct": 1, "srvr": 2])
    #expect(map.mapValues { $0 * 2 } == ["acct": 2, "svce": 4])
  }

  @Test("merges as it is told")
  func merging() {
    var map: AttributeMap<Int> = ["acct": 1]
    map.merge(["acct": 2, "svce": 3]) { old, _ in old }
    #expect(map == ["acct": 1, "svce": 3])
    map.merge(["acct": 2]) { _, new in new }
    #expect(map["acct"] == 2)
  }

  @Test("tells codes apart that begin with the same seven letters")
  func longCodes() {
    let map: AttributeMap<Int> = ["abcdefg": 1, "abcdefgh": 2, "abcdefgi": 3]
    #expect(map.count == 3 && map["abcdefg"] == 1 && map["abcdefgh"] == 2 && map["abcdefgi"] == 3)
    #expect(map.keys.map(\.rawValue) == ["abcdefg", "abcdefgh", "abcdefgi"])
  }
}
