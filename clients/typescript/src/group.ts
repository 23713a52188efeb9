// Some methods of a client, by what they are about.
import type { Connection } from "./http.js";

export class Group {
  protected readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }
}
