/// A verb whose result can be rows of chosen fields.
protocol TabularVerb: RunnableVerb {
  var common: CommonOptions { get set }
  var chosen: FieldOptions { get }
}

extension TabularVerb {
  /// The verb as it is run: fields are those of a document.
  func printingChosenFields() throws(CommandFailure) -> Self {
    guard chosen.fields != nil else { return self }
    if let format = common.format, format != .json {
      throw .usage("--fields and --format \(format.rawValue) cannot be used together", try: "use only one of them")
    }
    var verb = self
    verb.common.json = true
    return verb
  }
}
