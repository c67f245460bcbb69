import { health } from './types';
export = health;
