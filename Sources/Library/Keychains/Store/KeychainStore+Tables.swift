extension KeychainStore {
  /// The statements that make the tables of items, of the version and of the keys, of schema 12.11.
  package static var tableStatements: [String] {
    KeychainSchema.objects.filter { $0.category == .table }.map(\.sql)
  }
}
