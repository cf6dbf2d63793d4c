/// Quotes names for commands that users copy to a shell.
package enum ShellQuoting {
  /// Returns a name with control characters escaped, in single quotes if the shell would otherwise interpret it.
  package static func quote(_ name: String) -> String {
    let escaped = UntrustedText.escaped(name)
    // Digits, letters, and signs that no shell interprets.
    let isPlain = escaped.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || "._/-:+,@%".utf8.contains(byte)
    }
    return isPlain && !escaped.isEmpty ? escaped : "'" + escaped.replacingScalars("'", with: #"'\''"#) + "'"
  }

  /// Returns a backup or device argument for use in another command.
  ///
  /// - Parameters:
  ///   - argument: The argument that the user typed, or `nil` if the source was a stream.
  ///   - placeholder: A word in capitals.
  /// - Returns: The quoted argument. The placeholder if there is no argument, or if it contains characters that are
  ///   displayed as escapes and so cannot be copied.
  package static func argument(_ argument: String?, placeholder: String) -> String {
    guard let argument, !argument.isEmpty, UntrustedText.escaped(argument) == argument else { return placeholder }
    // Without the prefix, the command would read the path as a flag.
    return quote(argument.utf8.first == UInt8(ascii: "-") ? "./" + argument : argument)
  }
}
