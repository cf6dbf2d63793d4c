package import KeyhaulKit

/// The frame of every report that is a page: one file that fetches nothing, runs nothing, and reads well in light, in
/// dark and on paper.
package struct ReportPage: Sendable {
  /// What the browser's tab says.
  package let title: String
  /// Who made it, as the page's last words name it: "keyhaul 1.0".
  package let program: String
  /// What the page tells of people, in a sentence for whoever thinks of passing it on.
  package var content: String
  /// Rules that only this report needs, after those of all pages.
  package var style: String

  package init(
    title: String, program: String, content: String = "It contains account names, but no passwords.",
    style: String = ""
  ) {
    self.title = title
    self.program = program
    self.content = content
    self.style = style
  }

  /// The page in UTF-8, with what `body` writes as its content and `footer` before the program's name.
  ///
  /// - Throws: Where the digest of the style sheet, which the policy names, cannot be computed.
  package func html(body: Markup.Body, footer: Markup.Body = { _ in }) throws(DataProtectionError) -> String {
    let sheet = PageStyle.base + PageStyle.parts + style + PageStyle.print
    let policy = try ContentPolicy.admitting(style: sheet)
    var page = Markup()
    page.element("html", ["lang": "en"]) { page in
      page.element("head") { page in
        page.void("meta", ["charset": "utf-8"])
        page.void("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"])
        page.void("meta", ["name": "color-scheme", "content": "light dark"])
        page.void("meta", ["name": "referrer", "content": "no-referrer"])
        page.void("meta", ["http-equiv": "Content-Security-Policy", "content": policy])
        page.element("title", Markup.shortened(title))
        page.style(sheet)
      }
      page.newLine()
      page.element("body") { page in
        page.element("main", [:], body)
        page.newLine()
        page.element("footer") { page in
          footer(&page)
          page.element("p", "Made by \(program). \(content)")
        }
      }
    }
    return "<!DOCTYPE html>\n" + page.text + "\n"
  }
}
