import KeyhaulKit

extension ExportFormat {
  /// A page with a QR code for each one-time password, for any authenticator app.
  public static let codes = ExportFormat(
    "qr", ending: ".qr.html", hint: "codes to scan", kinds: [.genericPassword, .internetPassword],
    noun: "one-time password", containsWholeKinds: false, containsOneTimePasswords: true,
    begin: { $0.beginCodePage(.codes) }, append: { $0.appendCode($1) }, end: { $0.endCodePage() })

  /// A page with QR codes for Google Authenticator, each with up to ten one-time passwords.
  ///
  /// The format supports only a period of 30 seconds and codes of six or eight digits. Other one-time passwords are left
  /// out.
  public static let migration = ExportFormat(
    "migration", ending: ".migration.html",
    kinds: [.genericPassword, .internetPassword], noun: "one-time password", containsWholeKinds: false,
    containsOneTimePasswords: true,
    begin: { $0.beginCodePage(.migration) }, append: { $0.appendMigration($1) }, end: { $0.endMigrationPage() })
}

extension ItemExportWriter {
  mutating func beginCodePage(_ heading: CodePage.Heading) {
    do throws(DataProtectionError) {
      let frame = try CodePage.frame(heading)
      self.text.append(frame.start)
      page = CodePage(end: frame.end)
    } catch {
      counts.failure = .page(error.reason)
    }
  }

  mutating func appendCode(_ item: KeychainItem) {
    guard let password = OneTimePassword(item), let parameters = parameters(of: password, in: item) else { return }
    guard password.address.count <= QRCode.capacity else {
      return counts.skip(item, "its address is too long for a QR code")
    }
    countPassword()
    let accountLines = parameters.title == parameters.account ? [] : [parameters.account]
    appendCard(of: password.address, title: parameters.title, lines: accountLines)
  }

  mutating func appendMigration(_ item: KeychainItem) {
    guard let password = OneTimePassword(item), let parameters = parameters(of: password, in: item) else { return }
    guard let message = MigrationMessage(parameters) else {
      return counts.skip(item, "Google Authenticator supports only six or eight digits, and periods of 30 seconds")
    }
    guard MigrationMessage.fitsInCode([message]) else {
      return counts.skip(item, "its names are too long for a QR code")
    }
    countPassword()
    page?.pending.append(CodePage.PendingPassword(parameters: parameters, message: message))
  }

  mutating func endCodePage() {
    if let page { text.append(page.end) }
  }

  mutating func endMigrationPage() {
    let batches = page?.batches() ?? []
    for (index, batch) in batches.enumerated() {
      let lines = batch.map { pending in
        let parameters = pending.parameters
        return parameters.title == parameters.account
          ? parameters.title : "\(parameters.title), \(parameters.account)"
      }
      appendCard(
        of: MigrationMessage.address(of: batch.map(\.message), index: index, of: batches.count),
        title: "Code \(index + 1) of \(batches.count)", lines: lines)
    }
    endCodePage()
  }

  private mutating func countPassword() {
    counts.count += 1
    counts.secretCount += 1
  }

  /// Returns the parameters of a one-time password. Names that its address lacks come from the item.
  ///
  /// - Returns: `nil` if an authenticator could not use the one-time password; the counts then contain the reason.
  private mutating func parameters(
    of password: OneTimePassword, in item: KeychainItem
  ) -> OneTimePassword.Parameters? {
    switch password.parameters {
    case .success(var parameters):
      if parameters.issuer.isEmpty { parameters.issuer = PasswordEntry.title(of: item, oneTimePassword: nil) }
      if parameters.account.isEmpty { parameters.account = item.text(of: .account) }
      return parameters
    case .failure(let problem):
      counts.skip(item, problem.rawValue)
      return nil
    }
  }

  private mutating func appendCard(of address: SensitiveBytes, title: String, lines: [String]) {
    guard counts.failure == nil else { return }
    do throws(QRCodeError) {
      let code = try QRCode(address)
      text.append("\n<article>")
      code.append(to: &text, title: "QR code: \(HTMLWriter.shortened(title))")
      var markup = HTMLWriter()
      markup.element("h2") { $0.name(title) }
      for line in lines where !line.isEmpty { markup.element("p") { $0.name(line) } }
      text.append(markup.html)
      text.append("</article>")
    } catch {
      counts.failure = error == .noLibrary ? .noCodeLibrary : .noMemory
    }
  }
}

extension OneTimePassword.Parameters {
  /// The name of the service, or the name of the account if the service has none.
  fileprivate var title: String { issuer.isEmpty ? account : issuer }
}

/// The state of a page with QR codes.
struct CodePage {
  /// The HTML after the last QR code.
  let end: String
  /// The one-time passwords that are not in a QR code yet.
  var pending: [PendingPassword] = []

  /// A one-time password that will share a QR code with others.
  struct PendingPassword {
    let parameters: OneTimePassword.Parameters
    let message: MigrationMessage
  }

  /// Returns the one-time passwords of each QR code: up to ten, or fewer if their names are long.
  func batches() -> [ArraySlice<PendingPassword>] {
    var batches: [ArraySlice<PendingPassword>] = []
    var remaining = pending[...]
    while !remaining.isEmpty {
      var batch = remaining.prefix(MigrationMessage.maximumBatchSize)
      while batch.count > 1, !MigrationMessage.fitsInCode(batch.map(\.message)) { batch = batch.dropLast() }
      batches.append(batch)
      remaining = remaining.dropFirst(batch.count)
    }
    return batches
  }

  /// The texts at the top of a page.
  struct Heading: Sendable {
    let title: String
    let introduction: String

    static let codes = Heading(
      title: "One-time passwords",
      introduction: "Open an authenticator app on the new phone, choose to add an account, and scan a code below. "
        + "Scan each code once.")
    static let migration = Heading(
      title: "One-time passwords for Google Authenticator",
      introduction: "Open Google Authenticator on the new phone, choose to import accounts, and scan the codes below "
        + "in their order.")
  }

  private static let style = """
    .codes{display:grid;gap:1.5rem;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));margin-top:1.6rem}
    .codes article{background:var(--card);border:1px solid var(--line);border-radius:.7rem;padding:1rem}
    .codes h2{font-size:1rem;margin:0}
    .code{background:#fff;display:block;height:auto;margin-bottom:.7rem;width:100%}
    @media print{.codes{grid-template-columns:repeat(2,minmax(0,1fr));padding:0 1px}}

    """

  /// Returns the HTML before and after the QR codes.
  ///
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  static func frame(_ heading: Heading) throws(DataProtectionError) -> (start: String, end: String) {
    let page = try ReportPage(
      title: heading.title, program: "Keyhaul",
      privacyNote: "This page contains secrets. Delete it when you have scanned the codes.", style: style
    ).html { page in
      page.element("h1", "Keyhaul")
      page.element("p", ["class": "verdict"], heading.title)
      page.element("p", heading.introduction)
      page.element("p") { page in
        page.element(
          "strong", "Anyone who sees this page can sign in as you. Delete it as soon as you have scanned the codes.")
      }
      page.element("section", ["class": "codes"], "")
    }
    guard let start = page.firstRange(of: "<section class=\"codes\">") else { return (page, "") }
    return (String(page[..<start.upperBound]), String(page[start.upperBound...]))
  }
}
