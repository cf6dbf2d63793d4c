import KeyhaulKit

extension ExportFormat {
  /// Certificates and keys in PEM, each below a title line. Private keys are PKCS #8, public keys are
  /// SubjectPublicKeyInfo.
  public static let certificatesAndKeys = ExportFormat(
    "pem", hint: "certificates, keys", kinds: [.certificate, .key], noun: "item", secretNoun: "private key",
    needsSecrets: false, append: { $0.appendBlock($1) })
}

extension ItemExportWriter {
  /// Appends a certificate or a key. A key of a token is left out, because the keychain contains only a reference to it.
  mutating func appendBlock(_ item: KeychainItem) {
    guard item.text(of: .tokenID).isEmpty else {
      return counts.skip(item, "a token holds it; the keychain has only a reference")
    }
    guard let secret = item.secret else { return counts.skip(item, "it has no bytes") }
    do throws(CertificateError) {
      let block = try secret.withBytes { (bytes) throws(CertificateError) -> SensitiveBytes in
        guard item.kind == .key else { return try CertificateAttributes(der: Array(bytes)).pem }
        return try KeyMaterial(of: item, bytes).pem
      }
      appendTitle(of: item)
      block.withBytes { text.append($0) }
      counts.count += 1
      if item.kind == .key, item.role == .privateKey { counts.secretCount += 1 }
    } catch {
      counts.skip(item, error.reason)
    }
  }

  /// Appends a title line, which PEM readers ignore. It never contains the start of a PEM block.
  private mutating func appendTitle(of item: KeychainItem) {
    let title = [item.text(of: .label), item.text(of: .applicationTag)].first { !$0.isEmpty } ?? ""
    guard !title.isEmpty else { return }
    let visibleScalars = title.unicodeScalars.prefix(Self.maximumTitleLength).filter { scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
      default: true
      }
    }
    var line = "Title: "
    line.unicodeScalars.append(contentsOf: visibleScalars)
    text.append(line.replacingScalars("-----", with: "- "))
    text.append("\n")
  }

  /// The maximum number of Unicode scalars in a title.
  private static let maximumTitleLength = 200
}

extension KeychainItem {
  /// The role of the key according to `kcls`, which some writers store as text; `nil` if it is unknown.
  fileprivate var role: KeyMaterial.Role? {
    Int64(text(of: .keyClass)).flatMap(KeyMaterial.Role.init(rawValue:))
  }
}

extension KeyMaterial {
  fileprivate init(of item: KeychainItem, _ bytes: UnsafeRawBufferPointer) throws(CertificateError) {
    guard let role = item.role else {
      throw CertificateError(.unsupported, "it is not the public or private half of a key pair")
    }
    guard let type = Int64(item.text(of: .type)).flatMap(KeyMaterial.KeyType.init(rawValue:)) else {
      throw CertificateError(.unsupported, "it is not an RSA key or an elliptic-curve key")
    }
    try self.init(externalRepresentation: bytes, keyType: type, role: role)
  }
}
