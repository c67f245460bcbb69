import { health } from '../../index';
export = health;
