import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Terminal settings and text layout")
struct TerminalTests {
  func settings(_ environment: [String: String], color: ColorChoice = .auto) -> TerminalSettings {
    TerminalSettings(environment: environment, color: color)
  }

  @Test("Color depends on --color, the terminal, NO_COLOR and TERM")
  func color() {
    #expect(settings([:]).usesColor(isTerminal: true))
    #expect(!settings([:]).usesColor(isTerminal: false))
    #expect(!settings(["NO_COLOR": "1"]).usesColor(isTerminal: true))
    #expect(settings(["NO_COLOR": ""]).usesColor(isTerminal: true))
    #expect(!settings(["TERM": "dumb"]).usesColor(isTerminal: true))
    #expect(settings(["NO_COLOR": "1", "TERM": "dumb"], color: .always).usesColor(isTerminal: false))
    #expect(!settings([:], color: .never).usesColor(isTerminal: true))
  }

  @Test("The width is COLUMNS, or the terminal's width, or 80")
  func width() {
    #expect(settings(["COLUMNS": "120"]).width(terminalWidth: 90) == 120)
    #expect(settings([:]).width(terminalWidth: 90) == 90)
    #expect(settings([:]).width(terminalWidth: nil) == 80)
    #expect(settings(["COLUMNS": "0"]).width(terminalWidth: nil) == 80)
    #expect(settings(["COLUMNS": "wide"]).width(terminalWidth: 0) == 80)
  }

  @Test(
    "The first locale variable that is set decides about UTF-8",
    arguments: [
      (["LC_ALL": "C", "LANG": "de_DE.UTF-8"], false), (["LC_ALL": "", "LANG": "de_DE.UTF-8"], true),
      (["LC_CTYPE": "en_US.utf8"], true), (["LANG": "de_DE.ISO-8859-1"], false),
    ] as [([String: String], Bool)])
  func locale(environment: [String: String], isUnicode: Bool) {
    #expect(settings(environment).isUnicode == isUnicode)
  }

  @Test("Without UTF-8, symbols have an ASCII form and names are escaped")
  func ascii() {
    let style = TextStyle(width: 80, usesColor: false, isUnicode: false)
    #expect(style.adapted("a · b → c… –") == "a - b -> c... -")
    #expect(style.adapted("Zürich") == #"Z\u{FC}rich"#)
    #expect(TextStyle.plain.adapted("a · b → c…") == "a · b → c…")
  }

  @Test("Numbers are grouped by thousands", arguments: [(0, "0"), (999, "999"), (1000, "1,000"), (-41208, "-41,208")])
  func grouped(number: Int, text: String) {
    #expect(HumanReadable.grouped(number) == text)
  }

  @Test("Nouns agree with their number")
  func nouns() {
    #expect(HumanReadable.count(1, "item") == "1 item")
    #expect(HumanReadable.count(1204, "item") == "1,204 items")
    #expect(HumanReadable.count(0, "class", plural: "classes") == "0 classes")
    #expect(HumanReadable.bytes(UInt64(1)) == "1 byte")
    #expect(HumanReadable.list(["a", "b", "c"]) == "a, b and c")
    #expect(HumanReadable.grouped(UInt64.max) == "18,446,744,073,709,551,615")
  }

  @Test("Times are shown in local time with the time zone")
  func localTimes() {
    let date = KeychainDate(secondsSince1970: 1_700_000_000)
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.dateFormat = "yyyy-MM-dd HH:mm"
    let expected = formatter.string(from: Date(timeIntervalSince1970: 1_700_000_000))
    #expect(LocalTimeFormat.local(date).hasPrefix(expected + " "))
    #expect(LocalTimeFormat.localDay(date) == expected.prefix(10))
  }

  @Test("A table is as wide as its cells")
  func table() {
    var table = Table([.init("NAME", flexible: true), .init("ITEMS", rightAligned: true), .init("STATE")])
    table.add(["old-phone", "18", "unlocked"])
    table.add(["日本", "2", ""])
    #expect(
      table.lines(style: .plain) == ["NAME       ITEMS  STATE", "old-phone     18  unlocked", "日本           2"])
  }

  @Test("Lines of a table have no trailing blanks, even after a joining letter")
  func trailingBlanks() {
    var table = Table([.init("NAME"), .init("KIND")])
    for name in ["\u{111C2}", "e\u{301}", ""] { table.add([name, ""]) }
    let lines = table.lines(style: TextStyle(width: 40, usesColor: false, isUnicode: true))
    #expect(lines.dropFirst().map { Array($0.utf8) } == ["\u{111C2}", "e\u{301}", ""].map { Array($0.utf8) })
  }

  @Test("A wide table cuts its widest flexible column, and escapes before measuring")
  func narrowTable() {
    var table = Table([.init("NAME", flexible: true), .init("KIND")])
    table.add(["a name of thirty columns, or so", "generic"])
    table.add(["evil\u{202E}", "key"])
    let style = TextStyle(width: 30, usesColor: false, isUnicode: true)
    #expect(
      table.lines(style: style) == [
        "NAME                   KIND", "a name of thirty col…  generic", #"evil\u{202E}           key"#,
      ])
  }

  @Test("A progress text shows how far the work has come")
  func progress() {
    #expect(ProgressLine.text("Sealing items", done: 9, total: 16) == "Sealing items  9 of 16")
    #expect(ProgressLine.text("Deriving key", done: 4_300_000, total: 10_000_000) == "Deriving key  43 %")
    #expect(ProgressLine.text("Reading", done: nil, total: nil) == "Reading ...")
    func writing(_ done: Int?, of total: Int?, after duration: Duration) -> String {
      ProgressLine.text("Writing", unit: .byte, done: done, total: total, after: duration)
    }
    #expect(
      writing(256_000_000, of: 1_024_000_000, after: .seconds(10)) == "Writing  256 of 1,024 MB, about 30 s left")
    #expect(writing(256_000_000, of: 1_024_000_000, after: .seconds(1)) == "Writing  256 of 1,024 MB")
    #expect(writing(1_024_000_000, of: 1_024_000_000, after: .seconds(10)) == "Writing  1,024 of 1,024 MB")
    #expect(writing(2_500, of: 5_000, after: .zero) == "Writing  2 of 5 kB")
    #expect(writing(nil, of: nil, after: .zero) == "Writing ...")
  }
}
