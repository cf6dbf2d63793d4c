/// Whether this is the name of a stored payload: forty lower-case hexadecimal digits.
package func isFileIdentifier(_ text: some StringProtocol) -> Bool {
  text.utf8.count == 40 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
}
