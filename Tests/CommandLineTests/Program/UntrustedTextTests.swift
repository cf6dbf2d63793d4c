import KeyhaulKit
import Testing

@testable import Reports
@testable import keyhaul

@Suite("Untrusted names on a terminal")
struct UntrustedTextTests {
  @Test(
    "Characters that would control or hide text are escaped",
    arguments: [
      ("\u{1B}[31mred", #"\u{1B}[31mred"#), ("line\r\nbreak", #"line\u{D}\u{A}break"#), ("tab\there", #"tab\u{9}here"#),
      ("nul\u{0}", #"nul\u{0}"#), ("c1\u{9B}2J", #"c1\u{9B}2J"#), ("del\u{7F}", #"del\u{7F}"#),
      ("gpj.\u{202E}exe", #"gpj.\u{202E}exe"#), ("\u{2066}x\u{2069}", #"\u{2066}x\u{2069}"#),
      ("zero\u{200B}width", #"zero\u{200B}width"#), ("join\u{200D}er", #"join\u{200D}er"#),
      ("mark\u{FEFF}", #"mark\u{FEFF}"#), ("soft\u{AD}hyphen", #"soft\u{AD}hyphen"#), ("ls\u{2028}", #"ls\u{2028}"#),
      ("tag\u{E0041}", #"tag\u{E0041}"#), ("filler\u{3164}", #"filler\u{3164}"#), ("own\u{E000}", #"own\u{E000}"#),
      ("braille\u{2800}", #"braille\u{2800}"#), ("fake \\u{41}", #"fake \u{5C}u{41}"#),
    ])
  func escaped(name: String, shown: String) {
    #expect(UntrustedText.escaped(name) == shown)
  }

  @Test(
    "Unfamiliar but harmless characters stay unchanged",
    arguments: [
      "imap.example.org", "Zürich", "日本語", "naïve e\u{301}", "❤️", "C:\\Users", "a\\b", "– · …", "עברית", "",
      // Spaces of other widths: in French, in times of day, and in Japanese names.
      "Où\u{A0}?", "9:41\u{202F}AM", "山田\u{3000}太郎", "⠓⠊",
    ])
  func kept(name: String) {
    #expect(UntrustedText.escaped(name) == name)
  }

  @Test("Quoted names are cut at 120 characters, and quotation marks and hidden characters in them are escaped")
  func quoted() {
    #expect(UntrustedText.quoted(#"a "b" \ c"#) == #""a \"b\" \\ c""#)
    #expect(UntrustedText.quoted("soft\u{AD}hyphen\u{1B}") == #""soft\u{AD}hyphen\u{1B}""#)
    let longest = String(repeating: "x", count: 120)
    #expect(UntrustedText.quoted(longest) == "\"\(longest)\"")
    #expect(UntrustedText.quoted(longest + "y") == "\"\(longest)...\"")
  }

  @Test("A name is cut at a column, and escapes are not cut in half")
  func cut() {
    #expect(UntrustedText.escaped("abcdefghij", columns: 10) == "abcdefghij")
    #expect(UntrustedText.escaped("abcdefghijk", columns: 10) == "abcdefghi…")
    #expect(UntrustedText.escaped(String(repeating: "x", count: 1_000_000), columns: 8) == "xxxxxxx…")
    #expect(UntrustedText.escaped("abcdefghijk", columns: 10, ellipsis: "...") == "abcdefg...")
  }

  @Test("A name with many marks on each letter ends with an ellipsis if it is cut", arguments: [1, 7, 8, 50])
  func cutMarks(marksPerLetter: Int) {
    let letter = "e" + String(repeating: "\u{301}", count: marksPerLetter)
    let name = String(repeating: letter, count: 41)
    for cutName in [UntrustedText.shortened(name, columns: 40), UntrustedText.escaped(name, columns: 40)] {
      #expect(cutName.hasSuffix("…") && DisplayWidth.columns(of: cutName) <= 40)
    }
    // A name that fits is not cut.
    #expect(UntrustedText.shortened(letter, columns: 40) == letter)
  }

  @Test(
    "The measured width equals the width on a terminal",
    arguments: [("abc", 3), ("日本", 4), ("e\u{301}", 1), ("❤️", 2), ("👨", 2), ("ｆ", 2), ("ü", 1), ("", 0), ("한", 2)])
  func width(text: String, columns: Int) {
    #expect(DisplayWidth.columns(of: text) == columns)
  }

  @Test("Untrusted names do not shift later columns in tables and plans, at any width")
  func alignment() {
    let names = [
      "plain", "日本語のサービス", "e\u{301}e\u{301}e\u{301}", "🔑🔑", "🇨🇭", "ｆｕｌｌ", "한국어", "a\u{1B}[2Jb", "x\u{202E}y",
      "👨\u{200D}👩",
      String(repeating: "very long ", count: 40), String(repeating: "国", count: 60), "", "n\u{303}\u{303}\u{303}",
    ]
    let lastCell = "mark"
    var table = Table([.init("NAME", flexible: true), .init("CLASS")])
    for name in names { table.add([name, lastCell]) }
    let items = ReportItemTable(names, showsAll: true) {
      .init(symbol: "+", kind: .genericPassword, name: $0, protection: lastCell)
    }
    for width in [40, 80, 120] {
      for isUnicode in [true, false] {
        let style = TextStyle(width: width, usesColor: false, isUnicode: isUnicode)
        for lines in [Array(table.lines(style: style).dropFirst()), items.lines(style: style)] {
          let widths = lines.map { line in DisplayWidth.columns(of: String(line.dropLast(lastCell.count))) }
          #expect(lines.count == names.count && lines.allSatisfy { $0.hasSuffix(lastCell) })
          #expect(Set(widths).count == 1, "\(lines)")
          #expect(lines.allSatisfy { DisplayWidth.columns(of: $0) <= width })
        }
      }
    }
  }

  @Test("Cutting never splits a wide character")
  func wideCut() {
    #expect(DisplayWidth.cut("日本語", columns: 4, ellipsis: "…") == "日…")
    #expect(DisplayWidth.cut("日本語", columns: 6, ellipsis: "…") == "日本語")
  }
}
