import KeyhaulKit
import Testing

@testable import Reports
@testable import keyhaul

@Suite("A name out of a backup, shown on a terminal")
struct UntrustedTextTests {
  @Test(
    "is escaped where a terminal would act on it or hide it",
    arguments: [
      ("\u{1B}[31mred", #"\u{1B}[31mred"#), ("line\r\nbreak", #"line\u{D}\u{A}break"#), ("tab\there", #"tab\u{9}here"#),
      ("nul\u{0}", #"nul\u{0}"#), ("c1\u{9B}2J", #"c1\u{9B}2J"#), ("del\u{7F}", #"del\u{7F}"#),
      ("gpj.\u{202E}exe", #"gpj.\u{202E}exe"#), ("\u{2066}x\u{2069}", #"\u{2066}x\u{2069}"#),
      ("zero\u{200B}width", #"zero\u{200B}width"#), ("join\u{200D}er", #"join\u{200D}er"#),
      ("mark\u{FEFF}", #"mark\u{FEFF}"#), ("soft\u{AD}hyphen", #"soft\u{AD}hyphen"#), ("ls\u{2028}", #"ls\u{2028}"#),
      ("tag\u{E0041}", #"tag\u{E0041}"#), ("filler\u{3164}", #"filler\u{3164}"#), ("own\u{E000}", #"own\u{E000}"#),
      ("fake \\u{41}", #"fake \u{5C}u{41}"#),
    ])
  func escaped(name: String, shown: String) {
    #expect(UntrustedText.escaped(name) == shown)
  }

  @Test(
    "stays as it is where it is only unfamiliar",
    arguments: ["imap.example.org", "Zürich", "日本語", "naïve e\u{301}", "❤️", "C:\\Users", "a\\b", "– · …", "עברית", ""])
  func kept(name: String) {
    #expect(UntrustedText.escaped(name) == name)
  }

  @Test("between quotes has its own marked, everything hidden escaped, and is cut after 120 characters")
  func quoted() {
    #expect(UntrustedText.quoted(#"a "b" \ c"#) == #""a \"b\" \\ c""#)
    #expect(UntrustedText.quoted("soft\u{AD}hyphen\u{1B}") == #""soft\u{AD}hyphen\u{1B}""#)
    let longest = String(repeating: "x", count: 120)
    #expect(UntrustedText.quoted(longest) == "\"\(longest)\"")
    #expect(UntrustedText.quoted(longest + "y") == "\"\(longest)...\"")
  }

  @Test("is cut at the column, and what is cut is not half an escape's worth of looking")
  func cut() {
    #expect(UntrustedText.escaped("abcdefghij", columns: 10) == "abcdefghij")
    #expect(UntrustedText.escaped("abcdefghijk", columns: 10) == "abcdefghi…")
    #expect(UntrustedText.escaped(String(repeating: "x", count: 1_000_000), columns: 8) == "xxxxxxx…")
    #expect(UntrustedText.escaped("abcdefghijk", columns: 10, ellipsis: "...") == "abcdefg...")
  }

  @Test(
    "takes as many columns as a terminal gives it",
    arguments: [("abc", 3), ("日本", 4), ("e\u{301}", 1), ("❤️", 2), ("👨", 2), ("ｆ", 2), ("ü", 1), ("", 0), ("한", 2)])
  func width(text: String, columns: Int) {
    #expect(DisplayWidth.columns(of: text) == columns)
  }

  @Test("leaves the columns behind it where they are: in tables and in the lines of a plan, at any width")
  func alignment() {
    let names = [
      "plain", "日本語のサービス", "e\u{301}e\u{301}e\u{301}", "🔑🔑", "🇨🇭", "ｆｕｌｌ", "한국어", "a\u{1B}[2Jb", "x\u{202E}y",
      "👨\u{200D}👩",
      String(repeating: "very long ", count: 40), String(repeating: "国", count: 60), "", "n\u{303}\u{303}\u{303}",
    ]
    var table = Table([.init("NAME", flexible: true), .init("CLASS")])
    for name in names { table.add([name, "mark"]) }
    let items = ReportItemTable(names, showsAll: true) {
      .init(symbol: "+", kind: .genericPassword, name: $0, protection: "mark")
    }
    for width in [40, 80, 120] {
      for isUnicode in [true, false] {
        let style = TextStyle(width: width, usesColor: false, isUnicode: isUnicode)
        for lines in [Array(table.lines(style: style).dropFirst()), items.lines(style: style)] {
          let places = lines.map { line in DisplayWidth.columns(of: String(line.dropLast("mark".count))) }
          #expect(lines.count == names.count && lines.allSatisfy { $0.hasSuffix("mark") })
          #expect(Set(places).count == 1, "\(lines)")
          #expect(lines.allSatisfy { DisplayWidth.columns(of: $0) <= width })
        }
      }
    }
  }

  @Test("never splits a wide character when it is cut")
  func wideCut() {
    #expect(DisplayWidth.cut("日本語", columns: 4, ellipsis: "…") == "日…")
    #expect(DisplayWidth.cut("日本語", columns: 6, ellipsis: "…") == "日本語")
  }
}
