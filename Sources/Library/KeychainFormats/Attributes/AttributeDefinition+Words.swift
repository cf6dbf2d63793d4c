import Basics

extension AttributeDefinition {
  /// What Apple's headers call it, in words: "creation date", "is invisible"; the class of protection by its own name.
  package var words: String {
    if code == .protection { return "protection" }
    guard let constantName else { return code.rawValue }
    let prefixes = ["kSecAttr", "kSec"]
    let name = prefixes.lazy.filter { constantName.hasPrefix($0) }.map { constantName.dropFirst($0.count) }.first
    return (name ?? constantName[...]).reduce(into: "") { words, letter in
      // Capitals in a row, as of URL and ID, stay one word.
      if letter.isUppercase, !words.isEmpty, words.last?.isUppercase == false { words.append(" ") }
      words.append(letter)
    }.lowercased()
  }
}
