import Testing

@testable import Basics

@Suite("Comma-separated values")
struct CSVTests {
  @Test(
    "Fields are quoted according to RFC 4180, and formulas are disarmed",
    arguments: [
      ("plain", "plain"), ("", ""), ("a b", "a b"), ("a,b", #""a,b""#), (#"say "hi""#, #""say ""hi""""#),
      ("two\nlines", "\"two\nlines\""), ("two\r\nlines", "\"two\r\nlines\""), ("=1+1", "'=1+1"),
      ("+49 170 1234567", "+49 170 1234567"), ("+491701234567", "+491701234567"), ("+49+1", "'+49+1"), ("+A1", "'+A1"),
      ("+1|x", "'+1|x"), ("+ 1", "'+ 1"), ("+", "'+"),
      ("-1", "'-1"), ("@cmd", "'@cmd"), ("\tx", "'\tx"), ("\rx", "\"'\rx\""), ("a=b", "a=b"),
      (#"=HYPERLINK("x")"#, #""'=HYPERLINK(""x"")""#), ("＝1", "'＝1"),
      // Each quote forms one `Character` with a mark after it or a letter before it.
      ("a\"\u{301},b", "\"a\"\"\u{301},b\""), ("\u{D4E}\",b", "\"\u{D4E}\"\",b\""),
    ])
  func fields(text: String, expected: String) {
    #expect(CSV.line([text]) == expected + "\r\n")
    #expect(CSV.line([text, "x"]) == expected + ",x\r\n")
  }
}
