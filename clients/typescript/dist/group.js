export class Group {
    connection;
    constructor(connection) {
        this.connection = connection;
    }
}
